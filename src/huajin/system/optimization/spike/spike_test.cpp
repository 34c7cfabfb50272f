#include "huajin/system/optimization/spike/spike.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/tiny.h"

namespace huajin {
namespace {

TEST(Spike, MeasuresInStandardDeviations) {
  const Tensor losses = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble);  // mean 2.5, variance 5 / 3
  EXPECT_NEAR(z_score(4, losses), 1.5 / std::sqrt(5.0 / 3), 1e-12);
  EXPECT_EQ(z_score(2.5, losses), 0);
  EXPECT_EQ(z_score(-100, losses), 0);
  EXPECT_EQ(z_score(2, at::full({3}, 1.0, at::kDouble)), INFINITY);
  EXPECT_EQ(z_score(1, at::full({3}, 1.0, at::kDouble)), 0);
}

// The loss of these draws is 1000 more than it is, with the same gradient.
struct SpikeMaker : Technique {
  SpikeMaker(int64_t f, int64_t l) : first(f), last(l) {}
  std::string_view name() const override { return "spike_maker"; }
  void on_batch(Step& step) override {
    if (step.progress.draw >= first && step.progress.draw <= last) step.batch.extra["spike"] = step.batch.id;
  }
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override {
    Loss loss = next(out, in);
    if (in.index.extra.count("spike")) loss.data() = loss.data() + 1000;
    return loss;
  }
  int64_t first, last;
};
struct SpikeNotes : Observer {
  std::vector<std::string> notes;
  void on_note(const std::string& text) override { notes.push_back(text); }
};
TinyOptions spiking(const std::string& then, int64_t first, int64_t last) {
  TinyOptions options;
  options.text = false;
  options.steps = 100;
  options.techniques = {{"spike", {{"deviations", 20}, {"window", 8}, {"most", 2}, {"then", then}}}};
  options.after = {std::make_shared<SpikeMaker>(first, last)};
  return options;
}
std::vector<int64_t> steps_after(TinyRun& run, int draws) {
  std::vector<int64_t> steps;
  for (int i = 0; i < draws; ++i) {
    run.trainer().step();
    steps.push_back(run.trainer().state().progress.step);
  }
  return steps;
}

TEST(Spike, SkipsTheStepAndSaysWhy) {
  TinyRun run(spiking("accept", 10, 10));
  SpikeNotes notes;
  run.trainer().observe(&notes);
  steps_after(run, 10);
  Trace before, after;
  before.finish(run);
  run.trainer().step();
  EXPECT_TRUE(run.trainer().last_skipped());
  after.finish(run);
  EXPECT_EQ(difference(after, before), "");
  ASSERT_EQ(notes.notes.size(), 1u);
  EXPECT_NE(notes.notes[0].find("step 10, rank 0: the loss "), std::string::npos) << notes.notes[0];
  EXPECT_NE(notes.notes[0].find("standard deviations above the last 8; the step is skipped"), std::string::npos) << notes.notes[0];
  EXPECT_EQ(steps_after(run, 2), (std::vector<int64_t>{11, 12}));
}

TEST(Spike, IsNoneUntilTheWindowIsFull) {
  TinyRun run(spiking("accept", 7, 7));
  EXPECT_EQ(steps_after(run, 8).back(), 8);
}

// A level that stays is accepted after two skips, and then it is what others are compared with.
TEST(Spike, AcceptsANewLevel) {
  TinyRun run(spiking("accept", 10, 60));
  const auto steps = steps_after(run, 30);
  EXPECT_EQ(steps[11], 10);  // draws 10 and 11 are skipped
  EXPECT_EQ(steps[12], 11);
  EXPECT_EQ(steps[29], 28);
}

// Back to the checkpoint of step 6, and on with other batches: draws are not repeated.
TEST(Spike, RollsBackAfterSeveralInARow) {
  const TemporaryCheckpoints folder;
  TinyOptions options = spiking("roll_back", 10, 12);
  options.checkpoints = folder.path();
  TinyRun run(options);
  steps_after(run, 6);
  run.save();
  Trace saved, back;
  saved.finish(run);
  const auto steps = steps_after(run, 7);  // draws 6 to 12
  EXPECT_EQ(steps, (std::vector<int64_t>{7, 8, 9, 10, 10, 10, 6}));
  back.finish(run);
  EXPECT_EQ(difference(back, saved), "");
  EXPECT_EQ(run.trainer().state().progress.draw, 13);
  EXPECT_EQ(steps_after(run, 3).back(), 9);
}

}  // namespace
}  // namespace huajin
