// Release gates of the engine that hold with any technique in the recipe: splits (G-1), non-finite (G-4), branches of a stable run (G-6), recomputation (G-7).
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "huajin/core/errors.h"
#include "table.h"

namespace huajin {
namespace {

// Techniques that touch index, loss, gradients, update and evaluation at once.
std::vector<Named> stack_of(bool text) {
  std::vector<Named> stack{{"importance_sampling", {{"presample", 2}, {"threshold", 1}}}};
  if (!text) stack.push_back({"mixup", {{"alpha", 0.4}}});
  stack.push_back({"sam", {{"rho", 0.05}}});
  stack.push_back({"label_smoothing", {{"mass", 0.1}}});
  stack.push_back({"ema", {{"decay", 0.8}}});
  stack.push_back({"clip", {{"norm", 0.5}}});
  return stack;
}

// Eight rows as 1 x 8, 2 x 4, 8 x 1 and ragged 3 + 3 + 2 micro-batches, with ragged masks (tokens): loss, norm, weights and slots after ten steps.
void expect_splits(const TinyOptions& base, double tolerance) {
  TinyOptions options = base;
  options.steps = 10;
  const Trace whole = train(options);
  for (const int64_t micro : {4, 1, 3}) {
    options.micro_rows = micro;
    EXPECT_EQ(difference(train(options), whole, tolerance), "") << "micro-batches of " << micro << (base.text ? ", tokens" : ", vectors");
  }
}

TEST(Splits, DoNotChangeAdamwInFloat64) {
  for (const bool text : {true, false})
    for (const bool stack : {false, true}) {
      TinyOptions options = without(text);
      options.dtype = at::kDouble;
      options.optimizer = {"adamw", {{"learning_rate", 0.01}}};
      if (stack) options.techniques = stack_of(text);
      expect_splits(options, 1e-10);
    }
}

TEST(Splits, DoNotChangeMuonInFloat64) {
  TinyOptions options = without(true);
  options.dtype = at::kDouble;
  options.optimizer = {"muon", {{"learning_rate", 0.01}}};
  expect_splits(options, 1e-10);
}

TEST(Splits, DoNotChangeSgdInFloat32) {  // AdamW forgives a wrong scale and amplifies rounding; momentum does neither
  for (const bool text : {true, false}) {
    TinyOptions options = without(text);
    options.optimizer = {"sgd", {{"learning_rate", 0.05}, {"momentum", 0.9}}};
    options.techniques = {{"clip", {{"norm", 0.5}}}};
    expect_splits(options, 1e-6);
  }
}

// One stable run, its checkpoints cooled down for several budgets: each equals the run that had that budget from the start, bit for bit.
TEST(WsdBranches, EqualTheFullRuns) {
  for (const bool text : {true, false})
    for (const char* shape : {"linear", "one_minus_sqrt"}) {
      TinyOptions options = without(text);
      options.optimizer = {"adamw", {{"learning_rate", 0.02}}};
      options.schedule = {"wsd", {{"warmup_steps", 3}, {"cooldown", 0.25}, {"shape", shape}}};
      TinyOptions stable = options;
      stable.steps = 64;  // stable until 48
      const TemporaryCheckpoints folder;
      stable.checkpoints = folder.path();
      TinyRun trunk(stable);
      Trace trunk_trace;
      for (const int64_t budget : {16, 40}) {
        while (trunk.trainer().state().progress.step < budget * 3 / 4) {
          trunk.trainer().step();
          trunk_trace.take(trunk);
        }
        trunk.save();
        options.steps = budget;
        const Trace full = train(options);
        TinyOptions cooled = options;
        cooled.checkpoints = folder.path();
        TinyRun branch(cooled);
        ASSERT_TRUE(branch.resume());
        EXPECT_EQ(branch.trainer().state().progress.step, budget * 3 / 4);
        Trace trace = trunk_trace;
        while (branch.trainer().state().progress.step < budget) {
          branch.trainer().step();
          trace.take(branch);
        }
        EXPECT_LT(branch.session().optimizer().learning_rate(), 0.02 * 0.6);
        trace.finish(branch);
        EXPECT_EQ(difference(trace, full), "") << shape << ", " << budget << " steps";
      }
    }
}

TEST(Splits, AreSeenWhenTheyMatter) {  // the comparison can fail: another batch is not the same
  TinyOptions options = without(true);
  options.dtype = at::kDouble;
  const Trace eight = train(options);
  options.rows = 7;
  EXPECT_NE(difference(train(options), eight, 1e-10), "");
}

TEST(Recompute, IsBitwise) {  // with dropout, auxiliary state, several micro-batches and all techniques
  for (const bool text : {true, false})
    for (const auto compute : {at::kFloat, at::kBFloat16}) {
      TinyOptions options = without(text);
      options.techniques = stack_of(text);
      options.optimizer = {"adamw", {{"learning_rate", 0.01}}};
      options.micro_rows = 3;
      options.drop = 0.3;
      options.compute = compute;
      const Trace kept = train(options);
      options.recompute = true;
      EXPECT_EQ(difference(train(options), kept), "") << (text ? "tokens" : "vectors");
    }
}

// Makes a loss, or only a gradient, not finite in one draw.
struct Spoil : Technique {
  enum What { kLoss, kInfiniteLoss, kGradient };
  Spoil(What w, int64_t from, int64_t to) : what(w), first(from), last(to) {}
  std::string_view name() const override { return "spoil"; }
  void on_batch(Step& step) override {
    if (step.progress.draw >= first && step.progress.draw <= last) step.batch.extra["spoil"] = step.batch.id;
  }
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override {
    Loss loss = next(out, in);
    if (!in.index.extra.count("spoil")) return loss;
    if (what == kLoss) loss.data() = loss.data() * std::nan("");
    if (what == kInfiniteLoss) loss.data() = loss.data() * std::numeric_limits<double>::infinity();
    if (what == kGradient) loss.data() = loss.data() + (loss.data() * 0).sqrt();  // value 0, slope 0 / 0
    return loss;
  }
  What what;
  int64_t first, last;
};

struct Notes : Observer {
  std::vector<std::string> notes;
  void on_note(const std::string& text) override { notes.push_back(text); }
};

TEST(NonFinite, IsSkippedAndNamed) {
  for (const auto what : {Spoil::kLoss, Spoil::kInfiniteLoss, Spoil::kGradient}) {
    for (const bool text : {true, false}) {
      TinyOptions options = without(text);
      options.techniques = stack_of(text);
      options.before = {std::make_shared<Spoil>(what, 3, 3)};
      TinyRun run(options);
      Notes notes;
      run.trainer().observe(&notes);
      for (int i = 0; i < 3; ++i) run.trainer().step();
      Trace before, after;
      before.finish(run);
      run.trainer().step();
      after.finish(run);
      EXPECT_EQ(difference(after, before), "");
      ASSERT_EQ(notes.notes.size(), 1u);
      EXPECT_NE(notes.notes[0].find("step 3, rank 0"), std::string::npos) << notes.notes[0];
      EXPECT_NE(notes.notes[0].find("not finite"), std::string::npos) << notes.notes[0];
      if (what == Spoil::kGradient) {
        EXPECT_NE(notes.notes[0].find("the gradient of "), std::string::npos) << notes.notes[0];
      }
    }
  }
}

// Only the last of two passes is spoilt: nothing of the first may have taken effect, not even a running mean that a layer recorded.
struct SpoilLastPass : Technique {
  std::string_view name() const override { return "spoil_last_pass"; }
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override {
    now = step.progress.draw == 3 && !pass.probe;
    return next(pass);
  }
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override {
    Loss loss = next(out, in);
    if (now) loss.data() = loss.data() * std::nan("");
    return loss;
  }
  bool now = false;
};

TEST(NonFinite, InTheSecondPassLeavesNoTraceOfTheFirst) {
  TinyOptions options = without(false);
  options.techniques = {{"sam", {{"rho", 0.05}}}};
  options.after = {std::make_shared<SpoilLastPass>()};  // innermost
  TinyRun run(options);
  Trace before, after;
  before.finish(run);
  for (int i = 0; i < 3; ++i) run.trainer().step();
  after.finish(run);
  EXPECT_NE(difference(after, before), "");
  run.trainer().step();
  EXPECT_TRUE(run.trainer().last_skipped());
  Trace skipped;
  skipped.finish(run);
  EXPECT_EQ(difference(skipped, after), "");
}

TEST(NonFinite, StopsWhenToldTo) {
  TinyOptions options = without(false);
  options.on_non_finite = "stop";
  options.before = {std::make_shared<Spoil>(Spoil::kLoss, 2, 2)};
  TinyRun run(options);
  run.trainer().step();
  run.trainer().step();
  try {
    run.trainer().step();
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), kExitNotFinite);
  }
}

TEST(NonFinite, StopsAfterEightInARow) {
  TinyOptions options = without(false);
  options.before = {std::make_shared<Spoil>(Spoil::kLoss, 0, 1000)};
  TinyRun run(options);
  int steps = 0;
  try {
    for (; steps < 50; ++steps) run.trainer().step();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), kExitNotFinite);
  }
  EXPECT_EQ(steps, 7);
}

// float16: an overflow halves the scale, skips one step, and training goes on.
TEST(NonFinite, LossScaleFindsItsLevelInFloat16) {
  TinyOptions options = without(false);
  options.compute = at::kHalf;
  options.steps = 60;
  options.optimizer = {"adamw", {{"learning_rate", 0.02}}};
  const Trace trace = train(options);
  EXPECT_LT(trace.losses.back(), 0.8 * trace.losses.front());
}

}  // namespace
}  // namespace huajin
