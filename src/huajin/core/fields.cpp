// The fields of a recipe's own tables, and the reader that puts values into any config's fields.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/core/recipe.h"
#include "huajin/core/toml_text.h"

namespace huajin {

void RunSettings::fields(Fields& f) {
  f.integer("seed", seed, {.least = 0}, "keys every random number: the same seed gives the same run");
  f.text("precision", precision, {"auto", "fp32", "fp64", "bf16", "fp16"},
         "of multiplications; master weights stay in float32 (fp64: all in float64); auto: what this machine does fastest");
  f.text("on_non_finite", on_non_finite, {"skip", "stop", "roll_back"}, "what to do when a loss or gradient is not finite");
  f.number("loss_scale", loss_scale, {.least = 0}, "precision = fp16: factor on the loss, a power of two that never changes; 0: found while training");
  f.integer("most_skips", most_skips, {.least = 1}, "so many skipped steps in a row end the run");
}
void DataSettings::fields(Fields& f) {
  f.text("path", path, {}, "text file, folder of text, or images; empty: the C++ headers of libtorch");
  f.text("validation", validation, {}, "file or folder to validate on; empty: the last tenth of the data");
  f.text("kind", kind, {"auto", "text", "images"}, "what the data is; auto: looks");
  f.text("tokenizer", tokenizer, {"auto", "bytes", "characters", "bpe", "gpt2"}, "how text becomes tokens");
  f.integer("vocabulary", vocabulary, {.least = 257, .most = 65536}, "tokens of a bpe tokenizer that is trained on the data");
  f.text("tokenizer_folder", tokenizer_folder, {}, "folder of GPT-2's encoder.json and vocab.bpe, or of a tokenizer saved by a run");
  f.integer("workers", workers, {.least = 0, .most = 256}, "threads that load ahead of the step");
  f.integer("translate", translate, {.least = 0, .most = 64}, "images, while training: moved by up to so many pixels each way");
  f.flag("flip", flip, "images, while training: mirrored every other time");
  f.integer("cutout", cutout, {.least = 0, .most = 1024}, "images, while training: side of a square that is set to the mean; 0: none");
}
void BudgetSettings::fields(Fields& f) {
  f.text("limit", limit, {}, "how much to spend: 10m, 2h, 500step, 50Mtok, 10ksample, 3epoch, 1e15flop; several with commas: the nearest counts");
}
void BatchSettings::fields(Fields& f) {
  f.integer("rows", rows, {.least = 1, .most = 1 << 24}, "rows of a whole step, over all ranks and micro-batches");
  f.integer("length", length, {.least = 1, .most = 1 << 24}, "tokens a row; images: ignored");
}
void CheckpointSettings::fields(Fields& f) {
  f.text("every", every, {}, "auto, never, or how often: 100step, 60s");
  f.integer("keep", keep, {.least = 1}, "newest checkpoints to keep; the best and the last always stay");
}
void EvaluationSettings::fields(Fields& f) {
  f.text("every", every, {}, "auto, never, or how often: 100step");
  f.integer("overlap", overlap, {.least = 1, .most = 64}, "text: evaluation windows advance by length / overlap");
}
void LayoutSettings::fields(Fields& f) {
  f.integer("data", data, {.least = 0, .most = 65536}, "data-parallel ranks; 0: as many as mpirun started");
  f.number("timeout_seconds", timeout_seconds, {.least = 0, .open = true}, "a rank that is silent for so long in a collective is lost");
}
void ExecutionSettings::fields(Fields& f) {
  f.integer("micro_rows", micro_rows, {.least = 0}, "rows that a rank handles at once, accumulating gradients; 0: all of its share");
  f.flag("recompute", recompute, "keep only the inputs of blocks, compute the rest again in the backward pass");
}

// ---- reader ---------------------------------------------------------------------------------------------------------------
const std::string* ChoiceReader::take(std::string_view name) {
  seen_.emplace_back(name);
  const auto at = choice_.given.find(std::string(name));
  return at == choice_.given.end() ? nullptr : &at->second;
}

std::string ChoiceReader::place(std::string_view name) const {
  const auto at = choice_.where.find(std::string(name));
  const std::string key = table_ == "run" ? std::string(name) : table_ + "." + std::string(name);
  return at == choice_.where.end() ? key : at->second + (at->second == "--set" ? " " : ": ") + key;
}

void ChoiceReader::check_range(std::string_view name, const std::string& text, double value, Range range) const {
  const bool low = range.open ? !(value > range.least) : !(value >= range.least);
  const bool high = range.open_most ? !(value < range.most) : !(value <= range.most);
  if (!low && !high) return;
  std::string allowed;
  if (std::isfinite(range.least)) allowed = fmt::format("{} {}", range.open ? "greater than" : "at least", range.least);
  if (std::isfinite(range.most))
    allowed += fmt::format("{}{} {}", allowed.empty() ? "" : " and ", range.open_most ? "less than" : "at most", range.most);
  throw UserError(fmt::format("{} = {}: must be {}", place(name), text, allowed));
}

void ChoiceReader::number(std::string_view name, double& value, Range range, std::string_view) {
  const std::string* text = take(name);
  if (text == nullptr) return;
  double read = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), read);
  if (failed != std::errc() || end != text->data() + text->size() || !std::isfinite(read))
    throw UserError(fmt::format("{} = {}: must be a finite number, such as {}", place(name), shortened(*text), std::isfinite(value) ? value : 1.0));
  constexpr double kMost = std::numeric_limits<float>::max();  // kernels compute with it in float32
  if (std::abs(read) > kMost) throw UserError(fmt::format("{} = {}: must be a number of at most {:.1e} in size, such as {}", place(name), shortened(*text), kMost, value));
  check_range(name, *text, read, range);
  value = read;
}

void ChoiceReader::integer(std::string_view name, int64_t& value, Range range, std::string_view) {
  const std::string* text = take(name);
  if (text == nullptr) return;
  int64_t read = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), read);
  if (failed != std::errc() || end != text->data() + text->size())
    throw UserError(fmt::format("{} = {}: must be a whole number, such as {}", place(name), shortened(*text), value));
  check_range(name, *text, static_cast<double>(read), range);
  value = read;
}

void ChoiceReader::flag(std::string_view name, bool& value, std::string_view) {
  const std::string* text = take(name);
  if (text == nullptr) return;
  if (*text != "true" && *text != "false") throw UserError(fmt::format("{} = {}: must be true or false", place(name), shortened(*text)));
  value = *text == "true";
}

void ChoiceReader::text(std::string_view name, std::string& value, std::vector<std::string_view> choices, std::string_view) {
  const std::string* text = take(name);
  if (text == nullptr) return;
  const auto at = choice_.where.find(std::string(name));
  const bool typed = at != choice_.where.end() && at->second.rfind("--", 0) == 0;  // on the command line quotes are a nuisance
  if (!is_quoted(*text) && !typed) throw UserError(fmt::format("{} = {}: must be text in quotes", place(name), shortened(*text)));
  const std::string read = is_quoted(*text) ? toml_unquoted(*text) : *text;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), read) == choices.end()) {
    const std::vector<std::string> names(choices.begin(), choices.end());
    std::string all;
    for (auto& choice : names) all += (all.empty() ? "" : " | ") + choice;
    const std::string near = nearest_name(read, names);
    throw UserError(
        fmt::format("{} = {}: must be {}{}", place(name), shortened(toml_quoted(read)), all, near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  value = read;
}

void ChoiceReader::finish() {
  for (auto& [key, text] : choice_.given)
    if (std::find(seen_.begin(), seen_.end(), key) == seen_.end())
      throw UserError(fmt::format("{}: no such key in [{}]{}", place(key), table_, suggestion(key, seen_)));
}

// ---- writer ---------------------------------------------------------------------------------------------------------------
namespace {

class DefaultsWriter : public Fields {
 public:
  explicit DefaultsWriter(Choice& choice) : choice_(choice) {}
  void number(std::string_view name, double& value, Range, std::string_view) override { put(name, number_text(value)); }
  void integer(std::string_view name, int64_t& value, Range, std::string_view) override { put(name, std::to_string(value)); }
  void flag(std::string_view name, bool& value, std::string_view) override { put(name, value ? "true" : "false"); }
  void text(std::string_view name, std::string& value, std::vector<std::string_view>, std::string_view) override {
    put(name, toml_quoted(value));
    auto& given = choice_.given[std::string(name)];
    if (!is_quoted(given)) given = toml_quoted(given);  // typed bare on the command line
  }

 private:
  void put(std::string_view name, std::string text) { choice_.given.emplace(name, std::move(text)); }
  Choice& choice_;
};

class NamesWriter : public Fields {
 public:
  std::vector<std::string> names;
  void number(std::string_view name, double&, Range, std::string_view) override { names.emplace_back(name); }
  void integer(std::string_view name, int64_t&, Range, std::string_view) override { names.emplace_back(name); }
  void flag(std::string_view name, bool&, std::string_view) override { names.emplace_back(name); }
  void text(std::string_view name, std::string&, std::vector<std::string_view>, std::string_view) override { names.emplace_back(name); }
};

template <class Settings>
std::pair<std::string, std::function<void(Fields&)>> table_of(const char* name) {
  return {name, [](Fields& f) {
            Settings settings;
            settings.fields(f);
          }};
}

}  // namespace

void complete(Choice& choice, const std::function<void(Fields&)>& describe) {
  DefaultsWriter writer(choice);
  describe(writer);
}

std::vector<std::string> field_names(const std::function<void(Fields&)>& describe) {
  NamesWriter writer;
  describe(writer);
  return writer.names;
}

std::vector<std::pair<std::string, std::function<void(Fields&)>>> recipe_tables() {
  return {table_of<RunSettings>("run"),
          table_of<DataSettings>("data"),
          table_of<BudgetSettings>("budget"),
          table_of<BatchSettings>("batch"),
          table_of<CheckpointSettings>("checkpoint"),
          table_of<EvaluationSettings>("evaluation"),
          table_of<LayoutSettings>("layout"),
          table_of<ExecutionSettings>("execution")};
}

}  // namespace huajin
