// huajin bench tokenizer PATH: bench_tokenizer.cpp. huajin bench step MODEL: seconds of one training step (forward, backward, AdamW) on random tokens, in the form that the peers of bench/ print.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/core/registry.h"
#include "huajin/core/rng.h"
#include "huajin/core/trainer.h"
#include "huajin/io/json.h"
#include "huajin/zoo/zoo.h"

namespace huajin {
namespace {

constexpr int64_t kVocabulary = 50257;

// One batch of random tokens, the same at every step: the loss must fall, which shows that the step trains.
class RandomTokens : public Source {
 public:
  explicit RandomTokens(int64_t vocabulary) : vocabulary_(vocabulary) {}
  bool classifies() const override { return false; }
  int64_t size() const override { return 1 << 30; }
  int64_t classes() const override { return vocabulary_; }
  Tensor ids(uint64_t, int64_t, int64_t rows, int64_t) const override {
    Tensor ids = at::empty({rows}, at::kLong);
    for (int64_t r = 0; r < rows; ++r) ids.mutable_data_ptr<int64_t>()[r] = r;
    return ids;
  }
  int64_t units_per_row(int64_t length) const override { return length; }
  Examples load(const Tensor& ids, int64_t length, const Tensor&, int64_t, bool) const override {
    Examples examples;
    examples.inputs = at::empty({ids.size(0), length}, at::kLong), examples.targets = at::empty({ids.size(0), length}, at::kLong);
    for (int64_t r = 0; r < ids.size(0); ++r)
      for (int64_t t = 0; t < length; ++t) {
        const auto token = [&](int64_t at) {
          return static_cast<int64_t>(
              below(1, static_cast<uint64_t>(ids.const_data_ptr<int64_t>()[r] * (length + 1) + at), static_cast<uint64_t>(vocabulary_)));
        };
        examples.inputs.mutable_data_ptr<int64_t>()[r * length + t] = token(t);
        examples.targets.mutable_data_ptr<int64_t>()[r * length + t] = token(t + 1);
      }
    return examples;
  }

 private:
  int64_t vocabulary_;
};

}  // namespace

int bench_command(const CommandLine& line) {
  if (line.subjects.front() == "tokenizer" && line.subjects.size() == 2) return bench_tokenizer(line, line.subjects[1]);
  if (line.subjects.front() != "step" || line.subjects.size() != 2)
    throw UserError("huajin bench " + line.subjects.front() + ": write huajin bench step MODEL, such as gpt2-124m, or huajin bench tokenizer PATH");
  const ZooEntry& entry = find_model(line.subjects[1]);
  if (entry.images) throw UserError("huajin bench step " + entry.name + ": is a model of images; name one of text, such as gpt2-124m");
  Recipe recipe;
  recipe.schedule = {"constant", {}, {}};
  recipe.optimizer = {"adamw", {{"learning_rate", "0.0003"}, {"weight_decay", "0.1"}}, {}};
  for (auto& set : line.sets) recipe.set(set);
  recipe.model.name = entry.name;
  complete_recipe(recipe);
  ChoiceReader reader(recipe.model, "model");
  SessionOptions options;
  options.device = device_of(line.device);
  options.compute = choose_compute(line.precision, options.device);
  if (line.precision == "fp64") options.master = at::kDouble;
  options.micro_rows = recipe.execution.micro_rows, options.recompute = recipe.execution.recompute;
  RunSession session(std::make_unique<Model>(entry.build(reader, ModelInput{kVocabulary, line.length, 0, 0, 0})),
                     std::make_shared<RandomTokens>(kVocabulary), make_techniques(catalog(), recipe), single_process(), options);
  session.build();
  TrainerOptions trainer_options;
  trainer_options.limits.steps = static_cast<double>(line.steps + 1);
  trainer_options.rows = line.batch, trainer_options.length = line.length;
  Trainer trainer(session, trainer_options, nullptr, nullptr);

  std::vector<double> seconds, losses;
  for (int64_t i = 0; i <= line.steps; ++i) {
    const auto began = std::chrono::steady_clock::now();
    trainer.step();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    losses.push_back(std::round(trainer.last_loss() * 1e4) / 1e4);
    if (i == 0 && !line.json && !line.quiet) std::fprintf(stderr, "first step %.3f s\n", seconds[0]);
  }
  std::vector<double> steady(seconds.begin() + 1, seconds.end());
  std::sort(steady.begin(), steady.end());
  const auto milli = [](double value) { return std::round(value * 1e4) / 1e4; };
  const double tokens = static_cast<double>(line.batch * line.length);
  const Json out{{"peer", "huajin"},
                 {"model", entry.name},
                 {"batch", line.batch},
                 {"length", line.length},
                 {"precision", line.precision},
                 {"first_step_s", milli(seconds[0])},
                 {"min_step_s", milli(steady[0])},
                 {"median_step_s", milli(steady[steady.size() / 2])},
                 {"tokens_per_s", std::round(tokens / steady[0] * 10) / 10},
                 {"peak_rss_mb", std::round(peak_rss_mb())},
                 {"losses", losses}};
  if (line.json)
    fmt::print("{}\n", json_text(out));
  else
    fmt::print("{}: {:.4f} s a step at best, {:.4f} s in the median, {:.0f} tokens/s, {:.0f} MB at most\n", entry.name, steady[0],
               steady[steady.size() / 2], tokens / steady[0], peak_rss_mb());
  return kExitOk;
}

}  // namespace huajin
