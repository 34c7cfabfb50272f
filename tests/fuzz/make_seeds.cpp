// make_seeds FOLDER: good files for the fuzzers to start from, written by the code that writes real ones.
#include <algorithm>
#include <cstdio>
#include <string>

#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/token_shard.h"
#include "huajin/io/tokenizer.h"

int main(int argc, char** argv) {
  using namespace huajin;
  if (argc != 2) return std::fprintf(stderr, "usage: make_seeds FOLDER\n"), 2;
  try {
    const std::string root = argv[1];
    const float x[6] = {0, 1, 2, 3, 4, 5};
    CheckpointContent content;
    content.step = 12;
    content.score = 1.5;
    content.model = {{"a.weight", "F32", {2, 3}, x, 24}, {"b", "BF16", {}, x, 2}, {"empty", "I64", {0, 3}, x, 0}};
    content.state = {{"slot/adamw.m/a.weight", "F64", {3}, x, 24}};
    content.model_files["config.json"] = "{}";
    content.state_json = "{}";
    const std::string made = save_checkpoint(root + "/made", content);
    const auto seed = [&](const std::string& target, const std::string& name, const std::string& bytes) {
      make_folder(root + "/" + target);
      write_atomically(root + "/" + target + "/" + name, bytes);
    };
    seed("safetensors_file", "model", read_file(made + "/model/model.safetensors"));
    seed("safetensors_file", "state", read_file(made + "/state.safetensors"));
    seed("checkpoint_manifest", "manifest", read_file(made + "/manifest.json"));
    seed("safetensors_index", "index",
         R"({"metadata":{"total_size":26},"weight_map":{"a.weight":"model-00001-of-00002.safetensors","b":"sub/model-00002-of-00002.safetensors"}})");
    seed("safetensors_index", "escape", R"({"weight_map":{"a":"../x","b":"/etc/passwd","c":"."}})");
    for (const auto& [name, content] : train_bpe("step by step, stop by stop", 262)->files())
      if (name == "tokenizer.json") seed("tokenizer_file", "bpe", content);
    for (const auto& [name, content] : character_tokenizer("step by step")->files())
      if (name == "tokenizer.json") seed("tokenizer_file", "characters", content);
    const uint32_t ids[] = {0, 255, 65535};
    write_token_shard(root + "/made/narrow.bin", ids, 65536);
    write_token_shard(root + "/made/wide.bin", ids, 70000);
    seed("token_shard", "narrow", read_file(root + "/made/narrow.bin"));
    seed("token_shard", "wide", read_file(root + "/made/wide.bin"));
    std::string foreign = read_file(root + "/made/narrow.bin");
    std::fill(foreign.begin() + 12, foreign.begin() + 1024, '\0');
    seed("token_shard", "foreign", foreign);
    seed("utf8", "mixed", "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xED\xA0\x80\xC0\x80");
    seed("tokenizer_round_trip", "text", "it's 12 cats,\n\n  caf\xC3\xA9 \xF0\x9F\x98\x80\xFF");
    remove_tree(root + "/made");
  } catch (const Error& e) {
    std::fprintf(stderr, "make_seeds: %s\n", e.what());
    return e.code();
  }
  return 0;
}
