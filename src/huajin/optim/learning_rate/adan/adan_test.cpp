#include "huajin/optim/learning_rate/adan/adan.h"

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

TEST(Adan, EqualsTheFormulaInFloat64) { expect_golden_optimizer("adan", at::kDouble, 1e-12); }
TEST(Adan, EqualsTheFormulaInFloat32) { expect_golden_optimizer("adan", at::kFloat, 1e-6); }

TEST(Adan, IsAdamWithoutTheChange) {  // beta2 = 0, and no decay: Adam(beta1, beta3)
  BareSession session, other;
  Adan({.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0, .beta3 = 0.95, .weight_decay = 0}).setup(session);
  Adamw({.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0}).setup(other);
  expect_same_steps(session, other, 1e-14);
}

TEST(Adan, DecayIsProximal) {  // without a gradient w is divided by 1 + rate x weight_decay, so no decay overshoots zero
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  Adan({.learning_rate = 1, .weight_decay = 3}).setup(session);
  take_steps(session, 5);
  EXPECT_NEAR(p.value[0].item<double>(), std::pow(0.25, 5), 1e-15);
}

// A gradient that grows by the same amount each step: the corrected mean of its changes is that amount, whatever beta2 (from the second step on).
TEST(Adan, KeepsTheMeanChange) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({1}, at::kDouble));
  Adan({.beta2 = 0.5}).setup(session);
  for (int step = 0; step < 4; ++step) {
    p.grad = at::full({1}, 10.0 + 2 * step, at::kDouble);
    take_steps(session, 1, step);
  }
  EXPECT_NEAR(session.slot("adan.v", p).item<double>(), 2 * (0.5 + 0.25 + 0.125), 1e-12);  // the first change is zero
  EXPECT_EQ(session.slot("adan.before", p).item<double>(), 16);
}

}  // namespace
}  // namespace huajin
