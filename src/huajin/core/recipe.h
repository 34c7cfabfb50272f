// A recipe: everything that decides a run, as TOML. Each table is a struct with one list of fields (settings.h); every key can be set by
// `--set table.key=value`; unknown keys are errors with the nearest name. A resolved recipe (all defaults written out) reproduces the run.
//
//   precision = "auto"                      # fp32 | fp64 | bf16 | fp16 | auto: what the machine measures as fastest
//   techniques = ["ema", "sam"]             # order: first is outermost. A table named after a technique also enables it (order of the file)
//   [data] path, val, ...   [model] name, ...   [budget] limit   [batch] rows, length   [optimizer] name, learning_rate, ...
//   [schedule] name, ...    [checkpoint] every, keep   [evaluation] every   [layout] data, ...   [execution] micro_rows, recompute
//   [ema] decay = 0.999
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/core/settings.h"

namespace huajin {

struct RunSettings {
  int64_t seed = 1;
  std::string precision = "auto";  // top-level key of the file
  std::string on_non_finite = "skip";  // skip | stop | roll_back
  double loss_scale = 0;                 // 0: dynamic
  int64_t most_skips = 8;              // so many skipped steps in a row stop the run
  void fields(Fields& f);
};
struct DataSettings {
  std::string path;               // file or folder; "": the embedded default
  std::string validation;         // "": the last tenth
  std::string kind = "auto";      // auto | text | images
  std::string tokenizer = "auto"; // auto | bytes | characters | bpe | gpt2
  int64_t vocabulary = 4096;      // of bpe
  std::string tokenizer_folder;   // gpt2: folder of encoder.json and vocab.bpe; or of a saved tokenizer
  int64_t workers = 1;            // loader threads
  int64_t translate = 2;          // images, while training: moved by up to so many pixels
  bool flip = false;              // images, while training: mirrored every other time
  int64_t cutout = 0;             // images, while training: side of a square set to the mean
  void fields(Fields& f);
};
struct BudgetSettings {
  std::string limit = "60s";      // any of 10m, 2h, 500step, 50Mtok, 3epoch, 1e15flop, 10ksample; several: "2h, 500step", the nearest counts
  void fields(Fields& f);
};
struct BatchSettings {
  int64_t rows = 8;      // of the whole step, over all ranks and micro-batches
  int64_t length = 128;  // tokens a row; images: ignored
  void fields(Fields& f);
};
struct CheckpointSettings {
  std::string every = "auto";  // auto | never | a budget expression: 100step, 60s
  int64_t keep = 2;            // newest so many; the best and the last are always kept
  void fields(Fields& f);
};
struct EvaluationSettings {
  std::string every = "auto";  // auto | never | 100step
  int64_t overlap = 2;         // text: windows advance by length / overlap in the final evaluation; 1: no overlap
  void fields(Fields& f);
};
struct LayoutSettings {
  int64_t data = 0;  // data-parallel ranks; 0: as many as mpirun started
  double timeout_seconds = 60;  // a rank silent for so long in a collective is lost
  void fields(Fields& f);
};
struct ExecutionSettings {
  int64_t micro_rows = 0;      // rows a rank handles at once; 0: all of its share
  bool recompute = false;      // activation rematerialization, block by block
  void fields(Fields& f);
};

// A named entry of a registry with the keys given for it: [model], [optimizer], [schedule] and each technique's table.
struct Choice {
  std::string name;
  std::map<std::string, std::string> given;  // key -> TOML value text, as written or --set
  std::map<std::string, std::string> where;  // key -> "recipe.toml:12" or "--set"; "name": where the entry itself was named
};

struct Recipe {
  RunSettings run;
  DataSettings data;
  BudgetSettings budget;
  BatchSettings batch;
  CheckpointSettings checkpoint;
  EvaluationSettings evaluation;
  LayoutSettings layout;
  ExecutionSettings execution;
  Choice model{"llama", {}, {}}, optimizer{"adamw", {}, {}}, schedule{"wsd", {}, {}};
  std::vector<Choice> techniques;  // in order

  // Throws UserError naming file:line or --set, key, value, what is allowed, nearest key.
  static Recipe read(std::string_view toml, std::string_view file_name);
  void set(std::string_view key_equals_value);  // "sam.rho=0.05"
  // All defaults written out; of choices what `given` holds (complete() puts their defaults there). read(resolved()) is the same recipe.
  std::string resolved() const;
};

// Writes the default of every field that was not given into `choice.given`; `describe`: of its registry entry.
void complete(Choice& choice, const std::function<void(Fields&)>& describe);
// Keys that start with "run." or none, then [data], [batch], ...: what `explain` and the unknown-key message list. Table -> describe.
std::vector<std::pair<std::string, std::function<void(Fields&)>>> recipe_tables();
// The names of the fields, in order.
std::vector<std::string> field_names(const std::function<void(Fields&)>& describe);

// Feeds a Choice's given values into a config's fields: checks type and range, refuses keys that no field took. Call finish() at the end.
class ChoiceReader : public Fields {
 public:
  ChoiceReader(const Choice& choice, std::string table) : choice_(choice), table_(std::move(table)) {}
  void number(std::string_view name, double& value, Range range, std::string_view help) override;
  void integer(std::string_view name, int64_t& value, Range range, std::string_view help) override;
  void flag(std::string_view name, bool& value, std::string_view help) override;
  void text(std::string_view name, std::string& value, std::vector<std::string_view> choices, std::string_view help) override;
  void finish();  // UserError for a key that is not a field, with the nearest

 private:
  const std::string* take(std::string_view name);  // its value text, or null if it was not given
  std::string place(std::string_view name) const;  // "recipe.toml:12: sam.rho" or "--set sam.rho"
  void check_range(std::string_view name, const std::string& text, double value, Range range) const;

  const Choice& choice_;
  std::string table_;
  std::vector<std::string> seen_;
};

}  // namespace huajin
