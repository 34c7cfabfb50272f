#include "huajin/optim/learning_rate/sophia/sophia.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/bare_session.h"
#include "conformance/optimizer_checks.h"
#include "huajin/core/block_execution.h"
#include "huajin/core/logits.h"

namespace huajin {
namespace {

// Element by element in plain numbers, against loops and against operations on lists (weights with gaps).
TEST(Sophia, EqualsTheFormula) {
  for (const bool strided : {false, true}) {
    BareSession session;
    const Tensor start = at::tensor({1.0, -2.0, 3.0, 4.0}, at::kDouble);
    Parameter& p = session.add("w", strided ? at::stack({start, start}, -1).select(-1, 0) : start.clone());
    Sophia({.learning_rate = 0.1, .beta1 = 0.5, .gamma = 0.25, .epsilon = 1e-3, .weight_decay = 0.2}).setup(session);
    const double h[4] = {0, 8, 1e9, 1e-9}, g[4] = {3, -0.25, 7, 1e-4};
    session.slot("sophia.h", p).copy_(at::tensor({h[0], h[1], h[2], h[3]}, at::kDouble));
    double w[4] = {1, -2, 3, 4}, m[4] = {0, 0, 0, 0};
    for (int step = 0; step < 3; ++step) {
      p.grad = at::tensor({g[0], g[1], g[2], g[3]}, at::kDouble) * (step + 1);
      take_steps(session, 1, step);
      for (int i = 0; i < 4; ++i) {
        m[i] = 0.5 * m[i] + 0.5 * g[i] * (step + 1);
        w[i] = w[i] - 0.1 * 0.2 * w[i] - 0.1 * std::clamp(m[i] / std::max(0.25 * h[i], 1e-3), -1.0, 1.0);
        EXPECT_NEAR(p.value[i].item<double>(), w[i], 1e-14) << step << i << strided;
      }
    }
  }
}

TEST(Sophia, DrawsEachClassWithItsProbability) {
  const Tensor probabilities = at::tensor({0.125, 0.0, 0.5, 0.375, 0.0}, at::kDouble).expand({1000, 5});
  const Tensor drawn = drawn_classes(probabilities, (at::arange(1000, at::kDouble) + 0.5) / 1000);
  const int64_t wanted[5] = {125, 0, 500, 375, 0};
  for (int64_t c = 0; c < 5; ++c) EXPECT_EQ((drawn == c).sum().item<int64_t>(), wanted[c]);
}

struct SoftmaxRegression {  // an engine of one layer: what the hooks see of a pass
  Tensor x = (at::arange(24, at::kDouble) * 1.7).sin().reshape({8, 3});
  Tensor labels = at::zeros({8}, at::kLong);
  int passes = 0, probes = 0;
  bool pass(const Sophia& technique, Parameter& p, Pass which) {
    ++passes;
    probes += which.probe ? 1 : 0;
    const Tensor leaf = p.value.detach().requires_grad_(true);
    Outputs out;
    out.logits = dense_logits(x.mm(leaf.t()));
    Examples in;
    in.index.id = at::arange(8, at::kLong);
    in.targets = labels;
    technique.loss(out, in, [](const Outputs& o, const Examples& e) { return base_loss(o, e); }).data().mean().backward();
    p.grad = leaf.grad();
    return true;
  }
};

// For a softmax the Gauss-Newton matrix is the Hessian: its diagonal is the mean over rows of p (1 - p) x^2.
TEST(Sophia, EstimatesTheDiagonalOfTheHessianWithoutBias) {
  BareSession session;
  session.batch.id = at::arange(8, at::kLong);
  SoftmaxRegression engine;
  Parameter& p = session.add("w", (at::arange(9, at::kDouble)).cos().reshape({3, 3}));
  Sophia technique({.beta2 = 0});
  technique.setup(session);
  Tensor sum = at::zeros({3, 3}, at::kDouble);
  const int draws = 4000;
  for (int draw = 0; draw < draws; ++draw) {
    Step step = session.step();
    step.progress.draw = draw;
    ASSERT_TRUE(technique.gradients(step, {}, [&](Pass pass) { return engine.pass(technique, p, pass); }));
    technique.update(step, [] {});
    sum += session.slot("sophia.h", p);
  }
  const Tensor likely = at::softmax(engine.x.mm(p.value.t()), -1);
  const Tensor exact = (likely * (1 - likely)).t().mm(engine.x.square()) / 8;
  EXPECT_LT(((sum / draws - exact) / exact).abs().max().item<double>(), 0.1);
  EXPECT_EQ(engine.probes, draws);
  EXPECT_EQ(engine.passes, 2 * draws);
}

TEST(Sophia, MakesAnEstimateEveryFewStepsAndKeepsTheBatchsGradient) {
  BareSession session;
  session.batch.id = at::arange(8, at::kLong);
  SoftmaxRegression engine;
  Parameter& p = session.add("w", at::ones({3, 3}, at::kDouble));
  Sophia technique({.every = 3});
  technique.setup(session);
  engine.pass(technique, p, {});
  const Tensor wanted = p.grad.clone();
  for (int64_t i = 0; i < 6; ++i) {
    engine.passes = 0;
    Step step = session.step(session.at(i, 0));
    technique.gradients(step, {}, [&](Pass pass) { return engine.pass(technique, p, pass); });
    EXPECT_EQ(engine.passes, i % 3 == 0 ? 2 : 1) << i;
    EXPECT_TRUE(p.grad.equal(wanted)) << i;
  }
}

}  // namespace
}  // namespace huajin
