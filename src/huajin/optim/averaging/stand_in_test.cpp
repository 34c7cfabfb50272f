#include "huajin/optim/averaging/stand_in.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "conformance/bare_session.h"
#include "conformance/tiny.h"

namespace huajin {
namespace {

TEST(StandIn, RestoresTheWeightsBitForBitAlsoAfterAnError) {
  BareSession session;
  Parameter& p = session.add("w", at::arange(5, at::kFloat) / 3);
  const Tensor weights = p.value.clone();
  const void* storage = p.value.const_data_ptr();
  const StandIn stand_in(StandInConfig{0});
  const auto put = [](const Parameter&, Tensor& value) { value.fill_(7); };
  stand_in.evaluate(session, true, put, [&] { EXPECT_EQ(p.value[0].item<double>(), 7); });
  EXPECT_TRUE(p.value.equal(weights));
  EXPECT_THROW(stand_in.evaluate(session, true, put, [] { throw std::runtime_error("evaluation failed"); }), std::runtime_error);
  EXPECT_TRUE(p.value.equal(weights));
  EXPECT_EQ(p.value.const_data_ptr(), storage);
  stand_in.evaluate(session, false, put, [&] { EXPECT_TRUE(p.value.equal(weights)); });
}

// Innermost: looks at what is evaluated.
struct LookInside : Technique {
  std::string_view name() const override { return "look_inside"; }
  void evaluate(Session&, FunctionRef<void()> next) override {
    for (auto& p : run->session().table().parameters) seen[p.name] = p.value.clone();
    next();
  }
  TinyRun* run = nullptr;
  std::map<std::string, Tensor> seen;
};

// What the tiny model's running mean must be for weights of its body: over the first rows of the first epoch, no dropout.
Tensor activations_mean(const std::map<std::string, Tensor>& weights, uint64_t seed, int64_t rows) {
  const auto source = tiny_source(false);
  const Tensor ids = source->ids(seed, 0, rows, 0);
  const Tensor x = source->load(ids, 0, ids, 0, false).inputs;
  return at::tanh(at::linear(x, weights.at("body.weight"), weights.at("body.bias"))).mean(0);
}

// Statistics belong to weights: those of the average are estimated anew from training data, and the run's own come back.
TEST(StandIn, EstimatesRunningStatisticsForTheAverage) {
  for (const bool averages : {true, false}) {  // false: before swa's start, of the weights themselves
    TinyOptions options;
    options.dtype = at::kDouble;
    options.drop = 0;
    options.techniques = {{"swa", {{"start", averages ? 0.5 : 1.0}, {"statistics", 3}}}};
    const auto inside = std::make_shared<LookInside>();
    options.after = {inside};
    for (const int64_t micro : {0, 3}) {
      options.micro_rows = micro;
      TinyRun run(options);
      inside->run = &run;
      for (int i = 0; i < 12; ++i) run.trainer().step();
      std::map<std::string, Tensor> own;
      for (auto& p : run.session().table().parameters) own[p.name] = p.value.clone();
      run.trainer().evaluate();
      const Tensor wanted = activations_mean(inside->seen, run.session().seed(), 3 * options.rows);
      EXPECT_LE((inside->seen.at("middle.running_mean") - wanted).abs().max().item<double>(), 1e-12);
      EXPECT_GT((own.at("middle.running_mean") - wanted).abs().max().item<double>(), 1e-4);
      EXPECT_EQ(inside->seen.at("body.weight").equal(own.at("body.weight")), !averages);
      for (auto& p : run.session().table().parameters) EXPECT_TRUE(p.value.equal(own.at(p.name))) << p.name;
    }
  }
}

TEST(StandIn, LeavesStatisticsAloneIfToldTo) {
  TinyOptions options;
  options.techniques = {{"swa", {{"start", 0.5}, {"statistics", 0}}}};
  const auto inside = std::make_shared<LookInside>();
  options.after = {inside};
  TinyRun run(options);
  inside->run = &run;
  for (int i = 0; i < 12; ++i) run.trainer().step();
  run.trainer().evaluate();
  for (auto& p : run.session().table().parameters)
    if (p.name == "middle.running_mean") {
      EXPECT_TRUE(inside->seen.at(p.name).equal(p.value));
    }
}

}  // namespace
}  // namespace huajin
