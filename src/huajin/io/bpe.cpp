#include "huajin/io/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "huajin/core/errors.h"
#include "huajin/io/json.h"

namespace huajin {
namespace {

uint64_t scatter(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15ULL;
  return x ^ (x >> 29);
}

// Printable bytes stand for themselves; the 68 others, in order, for U+0100 and on.
std::array<uint32_t, 256> printable_points() {
  std::array<uint32_t, 256> points{};
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    points[b] = printable ? b : next++;
  }
  return points;
}
const std::array<uint32_t, 256> kPoint = printable_points();

uint64_t next_number() {
  static std::atomic<uint64_t> number{0};
  return ++number;
}

}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges) {
  const uint64_t size = std::bit_ceil(std::max<uint64_t>(16, merges.size() * 3));
  mask_ = size - 1;
  keys_.assign(size, 0);
  ranks_.assign(size, -1);
  for (size_t i = 0; i < merges.size(); ++i) {
    const uint64_t key = ((uint64_t{merges[i].left} << 32) | merges[i].right) + 1;
    uint64_t at = scatter(key) & mask_;
    while (keys_[at] != 0 && keys_[at] != key) at = (at + 1) & mask_;
    if (keys_[at] == 0) keys_[at] = key, ranks_[at] = static_cast<int32_t>(i);
    results_.push_back(merges[i].result);
  }
}

int64_t MergeTable::rank(uint32_t left, uint32_t right) const {
  if (keys_.empty()) return -1;
  const uint64_t key = ((uint64_t{left} << 32) | right) + 1;
  for (uint64_t at = scatter(key) & mask_; keys_[at] != 0; at = (at + 1) & mask_)
    if (keys_[at] == key) return ranks_[at];
  return -1;
}

BpeTokenizer::BpeTokenizer(std::string kind, std::vector<std::string> tokens, std::vector<uint32_t> byte_ids, std::vector<MergeTable::Merge> merges,
                           std::set<uint32_t> special, size_t longest_word)
    : kind_(std::move(kind)),
      tokens_(std::move(tokens)),
      byte_ids_(std::move(byte_ids)),
      merges_(std::move(merges)),
      table_(merges_),
      special_(std::move(special)),
      longest_word_(longest_word),
      byte_ranks_(256 * 256),
      number_(next_number()) {
  for (size_t a = 0; a < 256; ++a)
    for (size_t b = 0; b < 256; ++b) byte_ranks_[a * 256 + b] = static_cast<int32_t>(table_.rank(byte_ids_[a], byte_ids_[b]));
}

std::string BpeTokenizer::bytes_of(uint32_t id) const {
  if (id >= tokens_.size()) throw UserError(fmt::format("token id {}: the vocabulary has {} tokens, 0 to {}", id, tokens_.size(), tokens_.size() - 1));
  return tokens_[id];
}

std::string bytes_to_printable(std::string_view bytes) {
  std::string text;
  for (char c : bytes) {
    const uint32_t point = kPoint[static_cast<unsigned char>(c)];
    if (point < 0x80) {
      text.push_back(static_cast<char>(point));
    } else {
      text.push_back(static_cast<char>(0xC0 | (point >> 6)));
      text.push_back(static_cast<char>(0x80 | (point & 0x3F)));
    }
  }
  return text;
}

std::string printable_to_bytes(std::string_view text, const std::string& where) {
  static const std::unordered_map<uint32_t, char> back = [] {
    std::unordered_map<uint32_t, char> map;
    for (uint32_t b = 0; b < 256; ++b) map[kPoint[b]] = static_cast<char>(b);
    return map;
  }();
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    uint32_t point = c;
    size_t size = 1;
    if ((c & 0xE0) == 0xC0 && i + 1 < text.size()) point = (uint32_t{c} & 0x1F) << 6 | (static_cast<unsigned char>(text[i + 1]) & 0x3F), size = 2;
    const auto found = back.find(point);
    if ((c >= 0x80 && size == 1) || found == back.end())
      throw DamagedError(fmt::format("{}: the token \"{}\" has a character that stands for no byte", where, text.substr(0, 60)));
    bytes.push_back(found->second);
    i += size;
  }
  return bytes;
}

// Hugging Face's tokenizer.json, so that `transformers` splits and merges alike.
std::vector<std::pair<std::string, std::string>> BpeTokenizer::files() const {
  Json vocabulary = Json::object(), pairs = Json::array(), added = Json::array();
  for (int64_t id = 0; id < static_cast<int64_t>(tokens_.size()); ++id) {
    const std::string& token = tokens_[static_cast<size_t>(id)];
    if (special_.count(static_cast<uint32_t>(id)) == 0) {
      vocabulary[bytes_to_printable(token)] = id;
    } else {
      vocabulary[token] = id;
      added.push_back({{"id", id}, {"content", token}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false}, {"special", true}});
    }
  }
  for (auto& m : merges_) pairs.push_back({bytes_to_printable(tokens_[m.left]), bytes_to_printable(tokens_[m.right])});
  const Json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", added},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", level},
                          {"post_processor", nullptr},
                          {"decoder", level},
                          {"model",
                           {{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"ignore_merges", false},
                            {"vocab", vocabulary},
                            {"merges", pairs}}}};
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", 1000000000}, {"huajin", {{"kind", kind_}, {"longest_word", longest_word_}}}};
  return {{"tokenizer.json", json_text(tokenizer, 1)}, {"tokenizer_config.json", json_text(config, 1)}};
}

std::unique_ptr<Tokenizer> train_bpe(std::string_view text, int64_t vocabulary) {
  if (vocabulary < 256) throw UserError(fmt::format("data.vocabulary={}: byte-level BPE needs at least 256, one for each byte", vocabulary));
  std::vector<MergeTable::Merge> merges = learn_merges(text, vocabulary, kLongestWord);
  std::vector<std::string> tokens;
  std::vector<uint32_t> byte_ids;
  for (uint32_t b = 0; b < 256; ++b) tokens.push_back(std::string(1, static_cast<char>(b))), byte_ids.push_back(b);
  for (auto& m : merges) tokens.push_back(tokens[m.left] + tokens[m.right]);
  return std::make_unique<BpeTokenizer>("bpe", std::move(tokens), std::move(byte_ids), std::move(merges), std::set<uint32_t>{}, kLongestWord);
}

}  // namespace huajin
