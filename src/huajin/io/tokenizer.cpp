#include "huajin/io/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "huajin/core/errors.h"
#include "huajin/io/bpe.h"
#include "huajin/io/file.h"
#include "huajin/io/json.h"
#include "huajin/io/utf8.h"

namespace huajin {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::string_view kind() const override { return "bytes"; }
  int64_t vocabulary() const override { return 256; }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string bytes_of(uint32_t id) const override {
    if (id > 255) throw UserError(fmt::format("token id {}: bytes are 0 to 255", id));
    return std::string(1, static_cast<char>(id));
  }
  std::vector<std::pair<std::string, std::string>> files() const override {  // as a BPE without merges, which Hugging Face knows
    std::vector<std::string> tokens;
    std::vector<uint32_t> byte_ids;
    for (uint32_t b = 0; b < 256; ++b) tokens.push_back(std::string(1, static_cast<char>(b))), byte_ids.push_back(b);
    return BpeTokenizer("bytes", tokens, byte_ids, {}, {}, kLongestWord).files();
  }
};

class CharacterTokenizer : public Tokenizer {
 public:
  explicit CharacterTokenizer(std::vector<uint32_t> points) : points_(std::move(points)) {
    for (size_t i = 0; i < points_.size(); ++i) ids_[points_[i]] = static_cast<uint32_t>(i);
  }
  std::string_view kind() const override { return "characters"; }
  int64_t vocabulary() const override { return static_cast<int64_t>(points_.size()); }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const uint32_t point = next_code_point(text, at);
      const auto found = ids_.find(point);
      if (found == ids_.end())
        throw UserError(fmt::format("characters: U+{:04X} at byte {} is not among the {} characters that the tokenizer knows; train with it in the data, or use the tokenizer bytes or bpe",
                                    point, begin, points_.size()));
      ids.push_back(found->second);
    }
  }
  std::string bytes_of(uint32_t id) const override {
    if (id >= points_.size()) throw UserError(fmt::format("token id {}: the vocabulary has {} characters", id, points_.size()));
    return utf8_of(points_[id]);
  }
  std::vector<std::pair<std::string, std::string>> files() const override {  // each character is split off, then looked up as a word
    Json vocabulary = Json::object();
    for (size_t i = 0; i < points_.size(); ++i) vocabulary[utf8_of(points_[i])] = i;
    const Json tokenizer = {{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", Json::array()},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "[\\s\\S]"}}}, {"behavior", "Isolated"}, {"invert", false}}},
                            {"post_processor", nullptr},
                            {"decoder", {{"type", "Fuse"}}},
                            {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", utf8_of(points_[0])}}}};
    const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", 1000000000}, {"huajin", {{"kind", "characters"}}}};
    return {{"tokenizer.json", json_text(tokenizer, 1)}, {"tokenizer_config.json", json_text(config, 1)}};
  }

 private:
  std::vector<uint32_t> points_;
  std::unordered_map<uint32_t, uint32_t> ids_;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Ids of printable tokens, each once and without a gap, and the merges as pairs of printable tokens.
std::unique_ptr<Tokenizer> assemble(std::string kind, const Json& vocabulary, const std::vector<std::pair<std::string, std::string>>& pairs, const std::set<std::string>& special,
                                    size_t longest_word, const std::string& where) {
  if (!vocabulary.is_object() || vocabulary.empty()) throw DamagedError(where + ": no vocabulary, an object of token and id");
  const size_t count = vocabulary.size();
  std::vector<std::string> tokens(count);
  std::vector<bool> seen(count, false);
  std::unordered_map<std::string, uint32_t> id_of;
  std::set<uint32_t> special_ids;
  for (auto& [text, id] : vocabulary.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= static_cast<int64_t>(count) || seen[id.get<size_t>()])
      throw DamagedError(fmt::format("{}: token \"{}\" has the id {}; ids must be 0 to {}, each once", where, text.substr(0, 60), id.dump().substr(0, 30), count - 1));
    seen[id.get<size_t>()] = true;
    id_of[text] = id.get<uint32_t>();
    if (special.count(text) > 0) {
      tokens[id.get<size_t>()] = text;
      special_ids.insert(id.get<uint32_t>());
    } else {
      tokens[id.get<size_t>()] = printable_to_bytes(text, where);
    }
  }
  std::vector<uint32_t> byte_ids;
  for (int b = 0; b < 256; ++b) {
    const auto found = id_of.find(bytes_to_printable(std::string(1, static_cast<char>(b))));
    if (found == id_of.end()) throw DamagedError(fmt::format("{}: no token for the byte {}; a byte-level vocabulary has all 256", where, b));
    byte_ids.push_back(found->second);
  }
  std::vector<MergeTable::Merge> merges;
  for (auto& [left, right] : pairs) {
    const auto a = id_of.find(left), b = id_of.find(right), result = id_of.find(left + right);
    if (a == id_of.end() || b == id_of.end() || result == id_of.end())
      throw DamagedError(fmt::format("{}: merge \"{} {}\" names a token that the vocabulary does not have", where, left.substr(0, 40), right.substr(0, 40)));
    merges.push_back({a->second, b->second, result->second});
  }
  return std::make_unique<BpeTokenizer>(std::move(kind), std::move(tokens), std::move(byte_ids), std::move(merges), std::move(special_ids), longest_word);
}

// What would split or merge differently gives other ids: refused.
void require_gpt2_rules(const Json& file, const Json& model, const std::string& where) {
  const auto other = [](const Json& object, const char* key, const Json& wanted) { return object.contains(key) && object[key] != wanted; };
  if (!model.contains("type") || model["type"] != "BPE") throw UserError(where + ": only byte-level BPE (model.type \"BPE\") is read; this is another kind");
  if (other(file, "normalizer", nullptr)) throw UserError(where + ": normalizer is set; only tokenizers that take the text as it is are read");
  const Json& split = member(file, "pre_tokenizer", where);
  if (!split.is_object() || !split.contains("type") || split["type"] != "ByteLevel" || other(split, "use_regex", true) || other(split, "add_prefix_space", false))
    throw UserError(where + ": pre_tokenizer is not GPT-2's (ByteLevel with use_regex and without add_prefix_space), so the ids would differ; use another tokenizer");
  for (const char* key : {"ignore_merges", "byte_fallback"})
    if (other(model, key, false)) throw UserError(fmt::format("{}: model.{} is set, which huajin does not follow; use another tokenizer", where, key));
}

}  // namespace

std::string Tokenizer::decode(std::span<const uint32_t> ids) const {
  std::string text;
  for (uint32_t id : ids) text += bytes_of(id);
  return text;
}

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

namespace {

// The code points that occur.
class CodePoints {
 public:
  void add(uint32_t point) { point < low_.size() ? void(low_[point] = true) : void(high_.insert(point)); }
  std::unique_ptr<Tokenizer> tokenizer() const {
    std::vector<uint32_t> all;
    for (uint32_t p = 0; p < low_.size(); ++p)
      if (low_[p]) all.push_back(p);
    all.insert(all.end(), high_.begin(), high_.end());
    if (all.empty()) throw UserError("characters: the text is empty; give a file with text");
    return std::make_unique<CharacterTokenizer>(std::move(all));
  }

 private:
  std::vector<bool> low_ = std::vector<bool>(0x800, false);
  std::set<uint32_t> high_;
};

}  // namespace

std::unique_ptr<Tokenizer> character_tokenizer(std::string_view text) {
  CodePoints points;
  for (size_t at = 0; at < text.size();) points.add(next_code_point(text, at));
  return points.tokenizer();
}

std::unique_ptr<Tokenizer> character_tokenizer(const std::vector<std::string>& files) {
  CodePoints points;
  for (auto& path : files) {
    const FileView file(path);
    const std::string_view text = as_text(file.bytes());
    if (files.size() > 1) {
      if (text.substr(0, 65536).find('\0') != text.npos) continue;  // binary: no part of the corpus
      points.add('\n');
    }
    for (size_t at = 0, until = 0; at < text.size();) {
      points.add(next_code_point(text, at));
      if (at - until > (size_t{8} << 20)) file.forget(), until = at;
    }
  }
  return points.tokenizer();
}

std::unique_ptr<Tokenizer> gpt2_tokenizer(const std::string& folder) {
  const std::string where = folder + "/encoder.json";
  if (!exists(where) || !exists(folder + "/vocab.bpe"))
    throw UserError(fmt::format("data.tokenizer_folder=\"{}\": it must hold GPT-2's encoder.json and vocab.bpe", folder));
  const Json vocabulary = read_json(where);
  const std::string merges = read_file(folder + "/vocab.bpe", uint64_t{64} << 20);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string_view line : lines_of(merges)) {
    if (line.starts_with("#version") || line.empty()) continue;
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos)
      throw DamagedError(fmt::format("{}/vocab.bpe: the line \"{}\" is no merge, two tokens with a space between", folder, line.substr(0, 60)));
    pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return assemble("gpt2", vocabulary, pairs, {"<|endoftext|>"}, SIZE_MAX / 2, where);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder) {
  if (!exists(folder + "/tokenizer.json")) {
    if (exists(folder + "/encoder.json")) return gpt2_tokenizer(folder);
    throw UserError(fmt::format("{}: no tokenizer.json; give a folder that huajin or Hugging Face saved a tokenizer in", folder));
  }
  const std::string where = folder + "/tokenizer.json";
  const Json file = read_json(where), config = exists(folder + "/tokenizer_config.json") ? read_json(folder + "/tokenizer_config.json") : Json::object();
  const Json ours = config.is_object() && config.contains("huajin") && config["huajin"].is_object() ? config["huajin"] : Json::object();
  const std::string kind = ours.contains("kind") && ours["kind"].is_string() ? ours["kind"].get<std::string>() : "gpt2";
  const Json& model = member(file, "model", where);
  const Json& vocabulary = member(model, "vocab", where);
  if (!vocabulary.is_object()) throw DamagedError(where + ": model.vocab is no object of token and id");
  if (kind == "bytes") return byte_tokenizer();
  if (kind == "characters") {
    std::vector<uint32_t> points(vocabulary.size(), UINT32_MAX);
    for (auto& [text, id] : vocabulary.items()) {
      size_t at = 0;
      const uint32_t point = text.empty() ? 0 : next_code_point(text, at);
      if (at != text.size() || text.empty() || !id.is_number_unsigned() || id.get<size_t>() >= points.size() || points[id.get<size_t>()] != UINT32_MAX)
        throw DamagedError(where + ": a tokenizer of characters has one character a token and ids from 0, each once");
      points[id.get<size_t>()] = point;
    }
    if (points.empty()) throw DamagedError(where + ": the vocabulary is empty");
    return std::make_unique<CharacterTokenizer>(std::move(points));
  }
  require_gpt2_rules(file, model, where);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (auto& m : member(model, "merges", where)) {
    if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
      pairs.emplace_back(m[0].get<std::string>(), m[1].get<std::string>());
    } else if (m.is_string() && std::count(m.get_ref<const std::string&>().begin(), m.get_ref<const std::string&>().end(), ' ') == 1) {
      const std::string& text = m.get_ref<const std::string&>();
      pairs.emplace_back(text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1));
    } else {
      throw DamagedError(where + ": a merge is neither two strings nor one with a space between");
    }
  }
  std::set<std::string> special;
  Json all = vocabulary;
  if (file.contains("added_tokens") && file["added_tokens"].is_array())
    for (auto& token : file["added_tokens"]) {
      const std::string content = string_member(token, "content", where);
      special.insert(content);
      all[content] = integer_member(token, "id", where);
    }
  const bool bounded = ours.contains("longest_word") && ours["longest_word"].is_number_unsigned();
  return assemble(kind, all, pairs, special, bounded ? std::max<size_t>(1, ours["longest_word"].get<size_t>()) : SIZE_MAX / 2, where);
}

}  // namespace huajin
