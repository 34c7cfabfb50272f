#include "huajin/optim/learning_rate/nadamw/nadamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"
#include "huajin/optim/learning_rate/adamw/adamw.h"

namespace huajin {
namespace {

TEST(Nadamw, EqualsTheFormulaInFloat64) { expect_golden_optimizer("nadamw", at::kDouble, 1e-12); }
TEST(Nadamw, EqualsTheFormulaInFloat32) { expect_golden_optimizer("nadamw", at::kFloat, 1e-6); }

// Of a constant gradient the corrected mean is g; looking ahead adds g once more: b1 + (1 - b1) / (1 - b1^t).
TEST(Nadamw, StepsOfAConstantGradientHaveAClosedForm) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  p.decay = false;
  p.grad = at::full({2}, 5.0, at::kDouble);
  Nadamw({.learning_rate = 0.1, .beta1 = 0.9, .epsilon = 0}).setup(session);
  double wanted = 1;
  for (int step = 0; step < 6; ++step) {
    take_steps(session, 1, step);
    wanted -= 0.1 * (0.9 + 0.1 / (1 - std::pow(0.9, step + 1)));
    EXPECT_NEAR(p.value[0].item<double>(), wanted, 1e-12) << step;
  }
}

TEST(Nadamw, IsAdamwWithoutMomentum) {
  BareSession session, other;
  Nadamw({.learning_rate = 0.1, .beta1 = 0, .weight_decay = 0.3}).setup(session);
  Adamw({.learning_rate = 0.1, .beta1 = 0, .beta2 = 0.999, .weight_decay = 0.3}).setup(other);
  expect_same_steps(session, other, 1e-14);
}

}  // namespace
}  // namespace huajin
