// Several ranks give what one process gives: loss, norm, weights; with ragged masks, uneven rows, accumulation, and the real optimizers.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "huajin/core/block_execution.h"
#include "huajin/core/errors.h"
#include "huajin/system/data/data_parallel/replicas.h"
#include "ranks.h"
#include "tiny_model.h"

namespace huajin {
namespace {

TinyRun run_of(std::vector<std::unique_ptr<Technique>> techniques, at::ScalarType dtype, int64_t micro_rows, bool recompute = false) {
  TinyRun run;
  run.techniques = std::move(techniques);
  run.options = {.seed = 3, .master = dtype, .compute = dtype, .micro_rows = micro_rows, .recompute = recompute};
  return run;
}

// Replicas must be the same bits, not merely close.
void check_bits(RunSession& session) { check_replicas(*ranks(), session.parameters(), session.progress().step); }

void expect_within(const TinyDifference& d, double tolerance) {
  EXPECT_LE(greatest(d.loss), tolerance) << "loss";
  EXPECT_LE(greatest(d.norm), tolerance) << "norm";
  EXPECT_LE(greatest(d.weights), tolerance) << "weights";
}

TEST(DataParallel, EqualsOneProcessInFloat64WithAdamw) {
  const TinyOutcome one = train_tiny(run_of(adamw_and_clip(), at::kDouble, 0), single_process());
  ASSERT_LT(one.losses.back(), one.losses.front());
  for (int64_t micro : {0, 1, 2}) expect_within(difference(train_tiny(run_of(adamw_and_clip(), at::kDouble, micro), ranks(), check_bits), one), 1e-10);
  expect_within(difference(train_tiny(run_of(adamw_and_clip(), at::kDouble, 2, true), ranks(), check_bits), one), 1e-10);
}

TEST(DataParallel, EqualsOneProcessUnderSamAndEma) {
  const TinyOutcome one = train_tiny(run_of(sam_ema_adamw_and_clip(), at::kDouble, 0), single_process());
  expect_within(difference(train_tiny(run_of(sam_ema_adamw_and_clip(), at::kDouble, 2), ranks(), check_bits), one), 1e-10);
}

TEST(DataParallel, EqualsOneProcessInFloat32WithSgd) {
  const TinyOutcome one = train_tiny(run_of(sgd_and_clip(), at::kFloat, 0), single_process());
  for (int64_t micro : {0, 2}) expect_within(difference(train_tiny(run_of(sgd_and_clip(), at::kFloat, micro), ranks(), check_bits), one), 1e-6);
}

// D2: a rank with few counted tokens must not weigh more. Two rows, one a rank, with 5 and 1.
TEST(DataParallel, RanksWithFiveAndOneCountedTokens) {
  TinyRun alone = run_of(adamw_and_clip(), at::kDouble, 0), together = run_of(adamw_and_clip(), at::kDouble, 0);
  for (TinyRun* run : {&alone, &together}) run->counts = {5, 1}, run->rows = 2;
  expect_within(difference(train_tiny(std::move(together), ranks(), check_bits), train_tiny(std::move(alone), single_process())), 1e-10);
}

// A row without any counted token, and fewer rows than ranks: some ranks have nothing to do and still take part.
TEST(DataParallel, RanksWithoutWork) {
  TinyRun alone = run_of(adamw_and_clip(), at::kDouble, 0), together = run_of(adamw_and_clip(), at::kDouble, 0);
  for (TinyRun* run : {&alone, &together}) run->counts = {4, 0, 0}, run->rows = 1, run->steps = 4;
  alone.steps = together.steps = 1;  // the second row would count nothing at all
  expect_within(difference(train_tiny(std::move(together), ranks(), check_bits), train_tiny(std::move(alone), single_process())), 1e-10);
}

// D5: with accumulation over three micro-batches, exactly one round of reductions a step, of each gradient once.
TEST(DataParallel, OneRoundOfReductionsAStep) {
  TinyRun run = run_of(adamw_and_clip(), at::kDouble, 1);
  run.rows = 3 * ranks()->ranks();
  run.steps = 4;
  const int64_t before = ranks()->rounds();
  int64_t gradient_bytes = 0;
  train_tiny(std::move(run), ranks(), [&](RunSession& session) {
    check_bits(session);
    for (auto* p : session.parameters()) gradient_bytes += static_cast<int64_t>(p->value.nbytes());
  });
  EXPECT_EQ(ranks()->rounds() - before, 4);
  int64_t moved = 0;
  for (auto& transfer : ranks()->transfers()) moved += transfer.bytes;
  EXPECT_EQ(moved, gradient_bytes);
}

// H1, G-8: 7 samples, batches of 2 a rank: every sample comes to exactly one rank, and nobody hangs.
TEST(DataParallel, EverySampleIsCountedOnce) {
  for (int64_t rows : {1, 2, 7, 12, 13})
    for (int64_t group : {1, 2}) {
      Batch batch;
      batch.id = TinySource({1}).ids(0, 0, rows, 1);
      batch.group = group;
      std::vector<double> seen(static_cast<size_t>(rows), 0.0);
      for (auto& micro : cut_batch(batch, ranks()->rank(), ranks()->ranks(), 2))
        for (int64_t i = 0; i < micro.rows(); ++i) seen[static_cast<size_t>(micro.id[i].item().toLong())] += 1;
      ranks()->sum(seen);
      for (double count : seen) EXPECT_EQ(count, 1);
    }
}

// H11: a run that forgets to sum is found out at the next check.
TEST(DataParallel, ARunThatNeverSynchronisedIsFound) {
  TinyRun run = run_of(adamw_and_clip(), at::kDouble, 0);
  run.options.seed = 3 + static_cast<uint64_t>(ranks()->rank());  // stands for: each rank trains on its own
  run.steps = 1;
  EXPECT_THROW(train_tiny(std::move(run), single_process(), check_bits), Error);
}

}  // namespace
}  // namespace huajin
