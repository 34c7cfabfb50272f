#include "huajin/optim/large_batch/lars/lars.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"

namespace huajin {
namespace {

TEST(Lars, EqualsTheFormulaInFloat64) { expect_golden_optimizer("lars", at::kDouble, 1e-12); }
TEST(Lars, EqualsTheFormulaInFloat32) { expect_golden_optimizer("lars", at::kFloat, 1e-6); }

double moved(double scale, double weight_decay) {
  BareSession session;
  Parameter& p = session.add("w", at::full({4, 4}, 0.5, at::kDouble));  // norm 2
  p.grad = at::arange(16, at::kDouble).reshape({4, 4}) * scale;
  Lars({.learning_rate = 2, .trust = 0.1, .weight_decay = weight_decay}).setup(session);
  take_steps(session, 1);
  return (p.value - 0.5).norm().item<double>();
}

TEST(Lars, FirstStepIsAShareOfTheWeightsNormWhateverTheGradients) {
  for (const double scale : {1e-9, 1.0, 1e9}) EXPECT_NEAR(moved(scale, 0), 2 * 0.1 * 2, 1e-12) << scale;
  EXPECT_LT(moved(1, 1000), 0.4 + 1e-12);  // |g + b w| <= |g| + b |w|
}

TEST(Lars, LeavesZeroAndKeepsPlainStepsForBiases) {
  BareSession session;
  Parameter& zero = session.add("zero", at::zeros({2, 2}, at::kDouble));
  Parameter& still = session.add("still", at::ones({2, 2}, at::kDouble));
  Parameter& bias = session.add("bias", at::ones({3}, at::kDouble));
  bias.decay = false;
  zero.grad = at::ones({2, 2}, at::kDouble);
  bias.grad = at::full({3}, 2.0, at::kDouble);
  Lars({.learning_rate = 0.25, .trust = 1e-3, .weight_decay = 0.5}).setup(session);
  take_steps(session, 1);
  EXPECT_EQ(zero.value[0][1].item<double>(), -0.25);
  EXPECT_EQ(still.value[0][1].item<double>(), 1 - 0.25 * 0.5);
  EXPECT_EQ(bias.value[2].item<double>(), 0.5);
}

TEST(Lars, NormsAreThoseOfTheWholeTensors) {
  expect_halves_as_whole([](Session& session) { Lars({.learning_rate = 1, .trust = 0.1, .weight_decay = 0.1}).setup(session); });
}

}  // namespace
}  // namespace huajin
