// Release gate G-12: memory and threads stay flat over steps of varying size. And what a budget in samples, tokens and epochs promises: to the row.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "huajin/core/communicator.h"
#include "huajin/core/process.h"
#include "huajin/core/registry.h"
#include "huajin/core/rng.h"
#include "huajin/data/text_source.h"
#include "huajin/zoo/llama.h"
#include "tiny.h"

namespace huajin {
namespace {

constexpr int64_t kPage = 128, kText = 20011;

double status_number(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return std::strtod(line.c_str() + key.size() + 1, nullptr);
  return 0;
}

// Other rows and another length at every step.
struct VaryingSize : Technique {
  std::string_view name() const override { return "varying_size"; }
  void on_draw(Draw& draw, const Progress& progress) const override {
    const auto step = static_cast<uint64_t>(progress.draw);
    draw.length = kPage >> below(7, step, 4);
    draw.rows = 1 + static_cast<int64_t>(below(8, step, 24));
  }
};

struct CountedRun {
  std::unique_ptr<RunSession> session;
  std::unique_ptr<Trainer> trainer;
};

// Llama style on text, loader threads on; `varying`: VaryingSize decides rows and length.
CountedRun text_run(Limits limits, bool varying, int64_t rows = 8) {
  std::vector<uint32_t> tokens;
  for (int64_t i = 0; i < kText; ++i) tokens.push_back(static_cast<uint32_t>(below(3, static_cast<uint64_t>(i), 50)));
  Recipe recipe;
  recipe.optimizer = choice_of({"adamw", {{"learning_rate", 0.001}}});
  recipe.schedule = choice_of({"constant", nlohmann::json::object()});
  std::vector<std::unique_ptr<Technique>> techniques;
  if (varying) techniques.push_back(std::make_unique<VaryingSize>());
  for (auto& t : make_techniques(catalog(), recipe)) techniques.push_back(std::move(t));
  CountedRun run;
  auto model = std::make_unique<Model>(llama({.vocabulary = 50, .context = kPage, .layers = 2, .heads = 2, .width = 32}));
  run.session = std::make_unique<RunSession>(std::move(model), std::make_shared<TextSource>(std::move(tokens), 50, kPage, "text"), std::move(techniques), single_process(),
                                             SessionOptions{.seed = 1, .loader_workers = 2});
  run.session->build();
  TrainerOptions options;
  options.limits = limits;
  options.rows = rows, options.length = kPage;
  run.trainer = std::make_unique<Trainer>(*run.session, options, nullptr, nullptr);
  return run;
}

TEST(Memory, IsFlatOverFiveHundredStepsOfVaryingSize) {
  keep_freed_memory();  // as the program does
  CountedRun run = text_run(Limits{.steps = 1000}, true);
  for (int i = 0; i < 50; ++i) run.trainer->step();
  const double warm = status_number("VmRSS") / 1024, threads = status_number("Threads");
  double most = warm;
  for (int i = 50; i < 550; ++i) {
    run.trainer->step();
    if (i % 10 == 0) most = std::max(most, status_number("VmRSS") / 1024);
  }
  EXPECT_LT(most - warm, 16) << "MB more than after step 50, " << warm << " MB";
  EXPECT_EQ(status_number("Threads"), threads);
}

TEST(Budget, OfEpochsSamplesAndTokensEndsAtTheRow) {
  // 20,010 targets are 156 pages of 128 tokens; 3 epochs are 468 rows, no multiple of 7
  CountedRun epochs = text_run(Limits{.epochs = 3}, false, 7);
  epochs.trainer->fit();
  EXPECT_EQ(epochs.trainer->state().progress.tokens, 3 * 156 * kPage);
  EXPECT_EQ(epochs.trainer->state().progress.step, 67);
  EXPECT_EQ(epochs.trainer->state().progress.fraction, 1);
  CountedRun samples = text_run(Limits{.examples = 20}, false, 8);
  samples.trainer->fit();
  EXPECT_EQ(samples.trainer->state().progress.examples, 20);
  EXPECT_EQ(samples.trainer->state().progress.step, 3);
  CountedRun tokens = text_run(Limits{.tokens = 1000}, false, 4);
  tokens.trainer->fit();
  EXPECT_EQ(tokens.trainer->state().progress.tokens, 8 * kPage);  // the rows that hold 1000 tokens
  CountedRun varying = text_run(Limits{.epochs = 2}, true);
  varying.trainer->fit();
  EXPECT_GE(varying.trainer->state().progress.tokens, 2 * 156 * kPage);
  EXPECT_LT(varying.trainer->state().progress.tokens, 2 * 156 * kPage + kPage);
}

}  // namespace
}  // namespace huajin
