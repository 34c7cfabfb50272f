#include "huajin/optim/learning_rate/radam/radam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"

namespace huajin {
namespace {

TEST(Radam, EqualsTheFormulaInFloat64) { expect_golden_optimizer("radam", at::kDouble, 1e-12); }
TEST(Radam, EqualsTheFormulaInFloat32) { expect_golden_optimizer("radam", at::kFloat, 1e-6); }

TEST(Radam, RectificationStartsAtTheFifthStepAndEndsAtOne) {
  for (int64_t step = 1; step <= 4; ++step) EXPECT_EQ(rectification(0.999, step), 0) << step;
  double before = 0;
  for (int64_t step = 5; step < 5000; ++step) {
    const double r = rectification(0.999, step);
    EXPECT_GT(r, before) << step;
    before = r;
  }
  EXPECT_NEAR(rectification(0.999, 1 << 20), 1, 1e-12);
  EXPECT_EQ(rectification(0.6, 1000), 0);  // five gradients at most count: 2 / 0.4 - 1 = 4
}

TEST(Radam, StartsAsGradientDescent) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  p.grad = at::full({2}, 3.0, at::kDouble);
  Radam({.learning_rate = 0.01}).setup(session);
  take_steps(session, 4);  // the corrected mean of a constant gradient is the gradient
  EXPECT_NEAR(p.value[1].item<double>(), 1 - 4 * 0.03, 1e-14);
  take_steps(session, 1, 4);
  EXPECT_NEAR(p.value[1].item<double>(), 1 - 4 * 0.03 - 0.01 * rectification(0.999, 5), 1e-9);
}

}  // namespace
}  // namespace huajin
