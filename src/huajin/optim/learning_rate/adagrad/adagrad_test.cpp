#include "huajin/optim/learning_rate/adagrad/adagrad.h"

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

TEST(Adagrad, EqualsTheFormulaInFloat64) { expect_golden_optimizer("adagrad", at::kDouble, 1e-12); }
TEST(Adagrad, EqualsTheFormulaInFloat32) { expect_golden_optimizer("adagrad", at::kFloat, 1e-6); }

TEST(Adagrad, StepsOfAConstantGradientFallAsTheRootOfTheirNumber) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  p.grad = at::full({2}, 1e-4, at::kDouble);
  Adagrad({.learning_rate = 0.3, .epsilon = 0}).setup(session);
  double wanted = 1;
  for (int step = 0; step < 9; ++step) {
    take_steps(session, 1, step);
    wanted -= 0.3 / std::sqrt(step + 1.0);
    EXPECT_NEAR(p.value[0].item<double>(), wanted, 1e-12) << step;
  }
}

}  // namespace
}  // namespace huajin
