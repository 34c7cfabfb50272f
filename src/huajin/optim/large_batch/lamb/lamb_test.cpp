#include "huajin/optim/large_batch/lamb/lamb.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"
#include "huajin/optim/learning_rate/adamw/adamw.h"

namespace huajin {
namespace {

TEST(Lamb, EqualsTheFormulaInFloat64) { expect_golden_optimizer("lamb", at::kDouble, 1e-12); }
TEST(Lamb, EqualsTheFormulaInFloat32) { expect_golden_optimizer("lamb", at::kFloat, 1e-6); }

TEST(Lamb, StepIsAShareOfTheWeightsNormWhateverTheGradients) {
  for (const double scale : {1e-3, 1.0, 1e9}) {
    BareSession session;
    Parameter& p = session.add("w", at::full({4, 4}, 0.5, at::kDouble));
    Lamb({.learning_rate = 0.05}).setup(session);
    for (int step = 0; step < 4; ++step) {
      p.grad = (at::arange(16, at::kDouble).reshape({4, 4}) - 3 * step) * scale;
      const Tensor before = p.value.clone();
      take_steps(session, 1, step);
      EXPECT_NEAR((p.value - before).norm().item<double>(), 0.05 * before.norm().item<double>(), 1e-12) << scale << " " << step;
    }
  }
}

TEST(Lamb, IsAdamwWhereTheRatioIsOne) {
  BareSession session, other;  // by trust_clip: |w| is much greater than |d|
  Lamb({.learning_rate = 0.1, .epsilon = 1e-8, .weight_decay = 0.01, .trust_clip = true}).setup(session);
  Adamw({.learning_rate = 0.1, .beta2 = 0.999, .weight_decay = 0.01}).setup(other);
  expect_same_steps(session, other, 1e-12, 50);
  BareSession plain, plain_other;  // and for what does not decay
  Lamb({.learning_rate = 0.1, .epsilon = 1e-8}).setup(plain);
  Adamw({.learning_rate = 0.1, .beta2 = 0.999}).setup(plain_other);
  expect_same_steps(plain, plain_other, 1e-13, 1, false);
}

TEST(Lamb, NormalizedGradientsForgetTheirCommonScale) {
  Tensor made[2];
  for (const int i : {0, 1}) {
    BareSession session;
    Parameter& a = session.add("a", at::ones({2, 3}, at::kDouble));
    Parameter& b = session.add("b", at::ones({2, 3}, at::kDouble));
    Lamb({.normalize_gradient = true}).setup(session);
    for (int step = 0; step < 3; ++step) {
      const double scale = i == 0 ? 1 : std::pow(100, step);
      a.grad = at::arange(6, at::kDouble).reshape({2, 3}) * scale;
      b.grad = (at::arange(6, at::kDouble).reshape({2, 3}) - step) * scale;
      take_steps(session, 1, step);
    }
    made[i] = at::stack({a.value, b.value});
  }
  EXPECT_LT((made[0] - made[1]).abs().max().item<double>(), 1e-14);
}

TEST(Lamb, SurvivesZeroWeightsAndZeroGradients) {
  BareSession session;
  Parameter& p = session.add("w", at::zeros({2, 2}, at::kDouble));
  Lamb({.learning_rate = 0.1, .normalize_gradient = true}).setup(session);
  take_steps(session, 1);
  EXPECT_TRUE(p.value.equal(at::zeros({2, 2}, at::kDouble)));
  p.grad = at::ones({2, 2}, at::kDouble);
  take_steps(session, 1, 1);
  EXPECT_LT(p.value.max().item<double>(), 0);
}

TEST(Lamb, NormsAreThoseOfTheWholeTensors) {
  expect_halves_as_whole([](Session& session) { Lamb({.learning_rate = 0.1, .normalize_gradient = true}).setup(session); });
}

}  // namespace
}  // namespace huajin
