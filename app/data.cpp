// huajin data inspect | tokenize | pack.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/progress.h"
#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/core/process.h"
#include "huajin/io/file.h"
#include "huajin/io/image_set.h"
#include "huajin/io/json.h"
#include "huajin/io/packed_images.h"
#include "huajin/io/text_read.h"
#include "huajin/io/token_shard.h"
#include "huajin/io/tokenizer.h"

namespace huajin {
namespace {

int inspect(const CommandLine& line, const std::string& path) {
  Recipe recipe;
  recipe.data.path = path;
  recipe.data.tokenizer = "bytes";
  const RunInputs inputs = open_inputs(recipe, cache_folder(line));
  if (line.json) {
    Json out{{"path", path},
             {"kind", inputs.images ? "images" : "text"},
             {"classes", inputs.classes},
             {"train_units", inputs.train_units},
             {"validation_units", inputs.validation_units},
             {"train_bytes", inputs.train_bytes},
             {"class_names", inputs.class_names}};
    if (inputs.images) out["channels"] = inputs.channels, out["height"] = inputs.height, out["width"] = inputs.width;
    fmt::print("{}\n", json_text(out));
    return kExitOk;
  }
  fmt::print("{}\n", inputs.summary);
  if (!inputs.images) return kExitOk;
  fmt::print("{} x {} pixels, {} channels, {} classes:", inputs.width, inputs.height, inputs.channels, inputs.classes);
  for (size_t i = 0; i < inputs.class_names.size() && i < 20; ++i) fmt::print(" {}", inputs.class_names[i]);
  fmt::print("{}\n", inputs.class_names.size() > 20 ? " ..." : "");
  return kExitOk;
}

constexpr uint64_t kLearnFrom = uint64_t{32} << 20;  // bytes of text that a vocabulary is learned from

std::unique_ptr<Tokenizer> tokenizer_for(const CommandLine& line, const std::vector<std::string>& files) {
  if (line.tokenizer == "bytes") return byte_tokenizer();
  if (line.tokenizer == "characters") return character_tokenizer(files);
  if (line.tokenizer == "bpe") {
    if (line.vocabulary < 257 || line.vocabulary > 65536)
      throw UserError("--vocabulary " + std::to_string(line.vocabulary) + ": must be at least 257 and at most 65536");
    return train_bpe(corpus_sample(files, kLearnFrom), line.vocabulary);
  }
  if (is_folder(line.tokenizer)) return exists(line.tokenizer + "/encoder.json") ? gpt2_tokenizer(line.tokenizer) : load_tokenizer(line.tokenizer);
  throw UserError("--tokenizer " + line.tokenizer + ": must be bytes, characters, bpe, or a folder of a tokenizer's files");
}

// Gone when the command ends, unless it was renamed.
struct PartsFolder {
  std::string path;
  ~PartsFolder() { remove_tree(path); }
};

// Text to llm.c's token files with bounded memory: one file, or a folder of them where one would be too long; the tokenizer's files go into a folder beside it.
int tokenize(const CommandLine& line, const std::string& path) {
  const std::string out = line.output.empty() ? path + ".bin" : line.output;
  if (exists(out)) throw UserError(out + ": is there already; name another file with --out");
  const std::vector<std::string> files = corpus_files(path);
  const auto tokenizer = tokenizer_for(line, files);
  const PartsFolder parts{out + ".parts"};
  const TokenizeResult made = tokenize_to_shards(files, *tokenizer, parts.path);
  const std::string folder = out + ".tokenizer";
  make_folder(folder);
  for (auto& [name, content] : tokenizer->files()) write_atomically(folder + "/" + name, content);
  std::filesystem::rename(made.shards.size() == 1 ? made.shards.front() : parts.path, out);
  if (!made.skipped.empty()) std::fprintf(stderr, "huajin: %zu files that are no text were left out, the first: %s\n", made.skipped.size(), made.skipped.front().c_str());
  const double bytes_a_token = static_cast<double>(made.bytes) / static_cast<double>(std::max<uint64_t>(made.tokens, 1));
  if (line.json)
    fmt::print("{}\n", json_text(Json{{"out", out},
                                      {"files", made.shards.size()},
                                      {"tokens", made.tokens},
                                      {"vocabulary", tokenizer->vocabulary()},
                                      {"bytes", made.bytes},
                                      {"skipped", made.skipped.size()},
                                      {"tokenizer", folder}}));
  else
    fmt::print("{}: {} tokens of {} ({}){}, {:.2f} bytes a token; tokenizer in {}\n", out, made.tokens, tokenizer->vocabulary(), tokenizer->kind(),
               made.shards.size() > 1 ? fmt::format(" in {} files", made.shards.size()) : "", bytes_a_token, folder);
  return kExitOk;
}

// Images to one packed file that opens at once and is verified at every open.
int pack(const CommandLine& line, const std::string& path) {
  const std::string out = line.output.empty() ? path + ".huajimg" : line.output;
  if (exists(out)) throw UserError(out + ": is there already; name another file with --out");
  const ImageLayout layout = find_image_layout(path);
  if (layout == ImageLayout::kNone)
    throw UserError(path + ": holds no images; give class folders of JPEG or PNG, a tar of them, MNIST's IDX files or CIFAR's binary files");
  const ImageSet set = read_image_set(path, layout, usable_cores());
  write_packed_images(out, set, image_set_key(path));
  const PackedImages packed(out);  // proves every page
  for (auto& damaged : set.damaged) std::fprintf(stderr, "huajin: left out: %s\n", damaged.c_str());
  if (line.json)
    fmt::print("{}\n", json_text(Json{{"out", out},
                                      {"images", packed.count()},
                                      {"validation_from", packed.validation_from()},
                                      {"classes", packed.classes()},
                                      {"damaged", set.damaged.size()}}));
  else
    fmt::print("{}: {} images in {} classes, {} to validate; {} damaged ones left out\n", out, packed.count(), packed.classes().size(),
               packed.count() - packed.validation_from(), set.damaged.size());
  return kExitOk;
}

}  // namespace

int data_command(const CommandLine& line) {
  const std::vector<std::string> verbs{"inspect", "tokenize", "pack"};
  const std::string verb = line.subjects.front();
  if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end())
    throw UserError("huajin data " + verb + ": no such command" + suggestion(verb, verbs));
  if (line.subjects.size() != 2) throw UserError("huajin data " + verb + ": needs a path; write huajin data " + verb + " PATH");
  const std::string path = line.subjects[1];
  if (verb == "inspect") return inspect(line, path);
  return verb == "tokenize" ? tokenize(line, path) : pack(line, path);
}

}  // namespace huajin
