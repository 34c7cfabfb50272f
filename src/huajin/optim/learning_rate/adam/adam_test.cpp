#include "huajin/optim/learning_rate/adam/adam.h"

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

TEST(Adam, EqualsTheFormulaInFloat64) { expect_golden_optimizer("adam", at::kDouble, 1e-12); }
TEST(Adam, EqualsTheFormulaInFloat32) { expect_golden_optimizer("adam", at::kFloat, 1e-6); }

// With no gradient the penalty is the gradient: its first step has length `rate` whatever its size. AdamW's would be rate x weight_decay x w.
TEST(Adam, DecaysThroughTheMoments) {
  BareSession session;
  Parameter& p = session.add("w", at::full({3}, 2.0, at::kDouble));
  Adam({.learning_rate = 0.25, .epsilon = 0, .weight_decay = 1e-3}).setup(session);
  take_steps(session, 1);
  EXPECT_NEAR(p.value[1].item<double>(), 1.75, 1e-12);
}

// After a burst the second moment decays and Adam's steps grow back; the largest one does not.
TEST(Adam, AmsgradNeverForgetsABurst) {
  double moved[2];
  for (const bool amsgrad : {false, true}) {
    BareSession session;
    Parameter& p = session.add("w", at::ones({1}, at::kDouble));
    Adam({.learning_rate = 0.1, .beta1 = 0, .beta2 = 0.5, .amsgrad = amsgrad}).setup(session);
    p.grad = at::full({1}, 1000.0, at::kDouble);
    take_steps(session, 1);
    p.grad = at::ones({1}, at::kDouble);
    take_steps(session, 29, 1);
    const double before = p.value.item<double>();
    take_steps(session, 1, 30);
    moved[amsgrad] = before - p.value.item<double>();
  }
  EXPECT_NEAR(moved[0], 0.1, 1e-3);                    // v has come back to 1: (1000^2 - 1) 0.5^30 is 1e-3
  EXPECT_NEAR(moved[1], 0.1 / std::sqrt(5e5), 1e-12);  // v of the burst, 0.5 x 1000^2, stays
}

}  // namespace
}  // namespace huajin
