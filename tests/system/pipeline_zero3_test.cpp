// The execution interface carries a layout of another kind: two stages x two data ranks x ZeRO-3 equal one process (4 ranks; two stages alone with 2).
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "pipeline_zero3.h"
#include "ranks.h"
#include "tiny_model.h"

namespace huajin {
namespace {

struct Case {
  std::vector<std::unique_ptr<Technique>> (*techniques)() = adamw_and_clip;
  int64_t micro_rows = 1, rows = 7, steps = 5;
  bool recompute = false;
  int blocks = 3;
};

TinyRun run_of(const Case& c) {
  TinyRun run;
  run.techniques = c.techniques();
  run.options = {.seed = 3, .master = at::kDouble, .compute = at::kDouble, .micro_rows = c.micro_rows, .recompute = c.recompute};
  run.rows = c.rows;
  run.steps = c.steps;
  run.blocks = c.blocks;
  return run;
}

struct Piped {
  TinyOutcome outcome;  // weights undefined where another stage holds them
  int64_t most_filled, largest_block;
  int most_in_flight;
};

Piped train_piped(const Case& c) {
  TinyRun run = run_of(c);
  const Mesh mesh(2);
  CutSession session(tiny_model(run.blocks), std::make_shared<TinySource>(run.counts), std::move(run.techniques), ranks(), run.options);
  session.build();
  session.set_execution(std::make_unique<PipelineZero3>(session, mesh));
  auto& execution = dynamic_cast<PipelineZero3&>(session.execution());
  Limits limits;
  limits.steps = static_cast<double>(run.steps);
  Trainer trainer(session, {.limits = limits, .rows = run.rows, .length = TinySource::kLength}, nullptr, nullptr);
  Piped piped{};
  for (int64_t i = 0; i < run.steps; ++i) {
    trainer.step();
    piped.outcome.losses.push_back(trainer.last_loss());
    piped.outcome.norms.push_back(trainer.last_norm());
  }
  for (auto& p : session.table().parameters) piped.outcome.weights.push_back(execution.whole(p, p.value));
  piped.most_filled = execution.most_filled_bytes();
  piped.largest_block = execution.largest_block_bytes();
  piped.most_in_flight = execution.most_in_flight();
  return piped;
}

void expect_equal(const Case& c) {
  if (ranks()->ranks() % 2 != 0) GTEST_SKIP() << "two stages need an even number of ranks";
  const TinyOutcome one = train_tiny(run_of(c), single_process());
  const Piped piped = train_piped(c);
  double loss = 0, norm = 0, weights = 0, held = 0;
  for (size_t i = 0; i < one.losses.size(); ++i) {
    loss = std::max(loss, std::abs(one.losses[i] - piped.outcome.losses[i]));
    norm = std::max(norm, std::abs(one.norms[i] - piped.outcome.norms[i]));
  }
  for (size_t i = 0; i < one.weights.size(); ++i) {
    if (!piped.outcome.weights[i].defined()) continue;
    weights = std::max(weights, (one.weights[i] - piped.outcome.weights[i]).abs().max().item().toDouble());
    ++held;
  }
  EXPECT_LE(greatest(loss), 1e-10) << "loss";
  EXPECT_LE(greatest(norm), 1e-10) << "norm";
  EXPECT_LE(greatest(weights), 1e-10) << "weights";
  EXPECT_LT(held, static_cast<double>(one.weights.size())) << "a stage holds all of the model";
  EXPECT_EQ(piped.most_filled, piped.largest_block) << "ZeRO-3: more than one block's weights were there at a time";
  EXPECT_LE(piped.most_in_flight, 2) << "1F1B keeps no more micro-batches than stages";
}

TEST(PipelineZero3, EqualsOneProcessWithAdamw) { expect_equal({}); }
TEST(PipelineZero3, EqualsOneProcessWithSgd) { expect_equal({.techniques = sgd_and_clip}); }
TEST(PipelineZero3, SamAndEmaNeedNoLineForIt) { expect_equal({.techniques = sam_ema_adamw_and_clip, .micro_rows = 2}); }
TEST(PipelineZero3, WithRecomputation) { expect_equal({.micro_rows = 2, .recompute = true, .blocks = 4}); }
TEST(PipelineZero3, UnevenRowsNeedEmptyMicroBatches) { expect_equal({.micro_rows = 1, .rows = 5, .steps = 3}); }
TEST(PipelineZero3, OneMicroBatch) { expect_equal({.micro_rows = 0, .rows = 4}); }

}  // namespace
}  // namespace huajin
