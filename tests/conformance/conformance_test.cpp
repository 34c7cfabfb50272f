// What every technique must do, tried on each that the catalog lists: docs/adding-a-technique.md.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "huajin/core/errors.h"
#include "table.h"

namespace huajin {
namespace {

std::vector<std::string> catalog_names() {
  std::vector<std::string> names;
  for (auto& entry : catalog().entries()) names.push_back(entry.name);
  return names;
}

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  const Row& row() const { return row_of(GetParam()); }
};

// Averages that leave training alone and stand in for the weights in evaluations.
bool acts_in_evaluation(const std::string& name) {
  return catalog().find(name)->box == "optim/averaging" && name != "lookahead" && name != "twa";
}

std::string data_name(bool text) { return text ? "tokens" : "vectors"; }

TEST(ConformanceTable, HasARowForEveryTechniqueAndNoOther) {
  std::set<std::string> rows, names;
  for (auto& row : conformance_table()) EXPECT_TRUE(rows.insert(row.name).second) << row.name << " twice";
  for (auto& name : catalog_names()) EXPECT_TRUE(names.insert(name).second) << name << " is in the catalog twice";
  EXPECT_EQ(rows, names);
}

TEST_P(Conformance, LossFalls) {
  for (const bool text : text_or_not(row())) {
    TinyOptions options = with(row(), row().on, text);
    options.steps = 60;
    const Trace trace = train(options);
    double first = 0, last = 0;
    for (int i = 0; i < 5; ++i) first += trace.losses[i] / 5, last += trace.losses[trace.losses.size() - 1 - i] / 5;
    EXPECT_LT(last, 0.9 * first) << data_name(text);
  }
}

// The model multiplies with copies in two bytes: they must follow the weights. Half of what float32 learns is enough to tell.
TEST_P(Conformance, LossFallsInBfloat16) {
  for (const bool text : text_or_not(row())) {
    TinyOptions options = with(row(), row().on, text);
    options.steps = 60;
    options.compute = at::kBFloat16;
    const Trace trace = train(options);
    double first = 0, last = 0;
    for (int i = 0; i < 5; ++i) first += trace.losses[i] / 5, last += trace.losses[trace.losses.size() - 1 - i] / 5;
    EXPECT_LT(last, 0.95 * first) << data_name(text);
  }
}

// Off: the same losses, norms, weights and optimizer state as a run that never heard of it. With evaluations in between, which must change nothing
// either.
TEST_P(Conformance, OffIsAbsentBitForBit) {
  if (row().off.is_null()) {
    EXPECT_FALSE(row().off_reason.empty()) << "the row says neither how to switch it off nor why it can't be";
    return;
  }
  for (const bool text : text_or_not(row())) {
    const Trace absent = train(without(text));
    Trace off = train(with(row(), row().off, text), 3);
    std::set<std::string> known;
    for (auto& [name, tensor] : absent.state) known.insert(name);
    std::erase_if(off.state, [&](auto& named) { return !known.count(named.first); });  // slots of its own
    EXPECT_EQ(difference(off, absent), "") << data_name(text);
  }
}

TEST_P(Conformance, ActsWhenItIsOn) {  // else the other tests try nothing
  if (acts_in_evaluation(GetParam()) || GetParam() == "sgd" || GetParam() == "spike")
    return;  // averages: EvaluationsUseThem below. sgd is what the others are compared with. spike: no loss here is one, its own test makes some
  for (const bool text : text_or_not(row())) EXPECT_NE(difference(train(with(row(), row().on, text), 2), train(without(text), 2)), "") << data_name(text);
}

TEST_P(Conformance, ResumesBitForBit) {  // stopped twice, each part in a session of its own
  for (const bool text : text_or_not(row())) {
    TinyOptions options = with(row(), row().on, text);
    const Trace straight = train(options, 2);
    const TemporaryCheckpoints folder;
    options.checkpoints = folder.path();
    Trace parts;
    for (const int64_t end : {int64_t{3}, int64_t{8}, options.steps}) {
      TinyRun run(options);
      EXPECT_EQ(run.resume(), end != 3);
      while (run.trainer().state().progress.draw < end) {
        run.trainer().step();
        parts.take(run);
        if (run.trainer().state().progress.step % 2 == 0) run.trainer().evaluate();
      }
      run.save();
      if (end == options.steps) parts.finish(run);
    }
    EXPECT_EQ(difference(parts, straight), "") << data_name(text);
  }
}

// Around everything: all passes of a step run once as a probe, then again. Nothing may remember that.
struct EverythingTwice : Technique {
  std::string_view name() const override { return "everything_twice"; }
  Needs needs() const override { return kSeveralPasses; }
  bool gradients(Step&, Pass pass, FunctionRef<bool(Pass)> next) override {
    Pass probe = pass;
    probe.probe = true;
    return next(probe) && next(pass);
  }
};

TEST_P(Conformance, SurvivesGradientsTwice) {
  for (const bool text : text_or_not(row())) {
    TinyOptions options = with(row(), row().on, text);
    const Trace once = train(options);
    options.before = {std::make_shared<EverythingTwice>()};
    EXPECT_EQ(difference(train(options), once), "") << data_name(text);
  }
}

// A step that is skipped leaves weights, slots and the technique's own state as they were, and the next one goes on.
struct PoisonAt : Technique {
  explicit PoisonAt(int64_t d) : draw(d) {}
  std::string_view name() const override { return "poison"; }
  // A column of the index, no member: on_batch() also runs for the step after, so that its rows can be loaded ahead.
  void on_batch(Step& step) override {
    if (step.progress.draw == draw) step.batch.extra["poison"] = step.batch.id;
  }
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override {
    Loss loss = next(out, in);
    if (in.index.extra.count("poison")) loss.data() = loss.data() * std::nan("");
    return loss;
  }
  int64_t draw;
};

struct StateReader : Archive {
  std::vector<double> numbers;
  std::vector<Tensor> tensors;
  void number(std::string_view, double& value) override { numbers.push_back(value); }
  void tensor(std::string_view, Tensor& value) override { tensors.push_back(value.defined() ? value.clone() : value); }
  void rank_tensor(std::string_view, Tensor& value) override { tensors.push_back(value.clone()); }
};
StateReader own_state(RunSession& session) {
  StateReader reader;
  for (auto& technique : session.techniques()) technique->serialize(reader);
  return reader;
}

TEST_P(Conformance, SkippedStepTouchesNothing) {
  for (const bool text : text_or_not(row())) {
    TinyOptions options = with(row(), row().on, text);
    options.before = {std::make_shared<PoisonAt>(4)};
    TinyRun run(options);
    for (int i = 0; i < 4; ++i) run.trainer().step();
    Trace before, after;
    before.finish(run);
    const StateReader own = own_state(run.session());
    run.trainer().step();
    EXPECT_TRUE(run.trainer().last_skipped());
    after.finish(run);
    EXPECT_EQ(difference(after, before), "") << data_name(text);
    EXPECT_EQ(own_state(run.session()).numbers, own.numbers) << data_name(text);
    EXPECT_EQ(run.trainer().state().progress.step, 4);
    EXPECT_EQ(run.trainer().state().progress.draw, 5);
    run.trainer().step();
    EXPECT_FALSE(run.trainer().last_skipped());
    EXPECT_TRUE(std::isfinite(run.trainer().last_loss()));
  }
}

// With each other technique for three steps: finite, or refused before step 1 with a line that names one of the two.
TEST_P(Conformance, ComposesWithEachOtherOrRefuses) {
  for (auto& other : conformance_table()) {
    if (other.name == GetParam()) continue;
    for (const bool text : text_or_not(row())) {
      TinyOptions options = with(row(), row().on, text);
      const TinyOptions second = with(other, other.on, text);
      const PartOfRun part = catalog().find(other.name)->part;
      if (part == catalog().find(GetParam())->part && part != PartOfRun::kTechnique) continue;
      if (part == PartOfRun::kOptimizer) options.optimizer = second.optimizer;
      if (part == PartOfRun::kSchedule) options.schedule = second.schedule;
      if (part == PartOfRun::kTechnique) {
        const auto& after = catalog().find(GetParam())->after;
        const bool first = std::find(after.begin(), after.end(), other.name) != after.end();
        options.techniques.insert(first ? options.techniques.begin() : options.techniques.end(), {other.name, other.on});
      }
      options.steps = 3;
      try {
        TinyRun run(options);
        for (int i = 0; i < 3; ++i) {
          run.trainer().step();
          ASSERT_TRUE(std::isfinite(run.trainer().last_loss())) << other.name << ", " << data_name(text);
        }
      } catch (const UserError& error) {
        const std::string line = error.what();
        EXPECT_TRUE(line.find(GetParam()) != std::string::npos || line.find(other.name) != std::string::npos) << line;
        EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Conformance, testing::ValuesIn(catalog_names()), [](const auto& each) { return each.param; });

// No conflict with those that are there already.
bool fits(const std::string& name, const TinyOptions& options) {
  const auto refuses = [](const std::string& a, const std::string& b) {
    const auto& conflicts = catalog().find(a)->conflicts;
    return std::find(conflicts.begin(), conflicts.end(), b) != conflicts.end();
  };
  return std::none_of(options.techniques.begin(), options.techniques.end(), [&](auto& there) { return refuses(name, there.first) || refuses(there.first, name); });
}

TEST(ConformanceAll, EverythingTogetherTrainsAndResumes) {
  for (const bool text : {true, false}) {
    TinyOptions options = without(text);
    options.optimizer = {"muon", row_of("muon").on};
    options.schedule = {"wsd", row_of("wsd").on};
    for (auto& row : conformance_table())
      if (catalog().find(row.name)->part == PartOfRun::kTechnique && row.data != (text ? Data::kVectors : Data::kText) && fits(row.name, options))
        options.techniques.push_back({row.name, row.on});
    // The catalog's rule: importance_sampling chooses rows before mixup pairs them.
    std::stable_sort(options.techniques.begin(), options.techniques.end(),
                     [](auto& a, auto& b) { return a.first == "importance_sampling" && b.first == "mixup"; });
    const Trace straight = train(options);
    EXPECT_LT(straight.losses.back(), straight.losses.front());
    const TemporaryCheckpoints folder;
    options.checkpoints = folder.path();
    {
      TinyRun run(options);
      for (int i = 0; i < 5; ++i) run.trainer().step();
      run.save();
    }
    TinyRun run(options);
    ASSERT_TRUE(run.resume());
    while (run.trainer().state().progress.draw < options.steps) run.trainer().step();
    Trace resumed;
    resumed.finish(run);
    Trace end = straight;
    end.losses.clear(), end.norms.clear();
    EXPECT_EQ(difference(resumed, end), "") << data_name(text);
  }
}

TEST(ConformanceAll, EvaluationsUseTheAverages) {
  int averages = 0;
  for (auto& row : conformance_table()) {
    if (!acts_in_evaluation(row.name)) continue;
    ++averages;
    TinyRun a(without(false)), b(with(row, row.on, false));
    for (int i = 0; i < 7; ++i) a.trainer().step(), b.trainer().step();
    EXPECT_EQ(a.trainer().last_loss(), b.trainer().last_loss()) << row.name;
    EXPECT_NE(a.trainer().evaluate().loss, b.trainer().evaluate().loss) << row.name;
  }
  EXPECT_GE(averages, 3);
}

}  // namespace
}  // namespace huajin
