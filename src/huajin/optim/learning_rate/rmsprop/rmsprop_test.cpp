#include "huajin/optim/learning_rate/rmsprop/rmsprop.h"

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

TEST(Rmsprop, EqualsTheFormulaInFloat64) { expect_golden_optimizer("rmsprop", at::kDouble, 1e-12); }
TEST(Rmsprop, EqualsTheFormulaInFloat32) { expect_golden_optimizer("rmsprop", at::kFloat, 1e-6); }

// Of a constant gradient g the mean square after t steps is (1 - b^t) g^2 and the mean (1 - b^t) g, so the variance is b^t (1 - b^t) g^2.
TEST(Rmsprop, StepsOfAConstantGradientHaveAClosedForm) {
  for (const bool centered : {false, true}) {
    BareSession session;
    Parameter& p = session.add("w", at::ones({2}, at::kDouble));
    p.grad = at::full({2}, -7.0, at::kDouble);
    Rmsprop({.learning_rate = 0.1, .beta = 0.8, .epsilon = 0, .centered = centered}).setup(session);
    double wanted = 1;
    for (int step = 0; step < 6; ++step) {
      take_steps(session, 1, step);
      const double left = std::pow(0.8, step + 1);
      wanted += 0.1 / std::sqrt(centered ? left * (1 - left) : 1 - left);
      EXPECT_NEAR(p.value[1].item<double>(), wanted, 1e-12) << step << centered;
    }
  }
}

TEST(Rmsprop, KeepsOnlyTheStateItNeeds) {
  for (const int64_t wanted : {1, 2, 3}) {
    BareSession session;
    Parameter& p = session.add("w", at::ones({2}, at::kDouble));
    p.grad = at::ones({2}, at::kDouble);
    Rmsprop({.momentum = wanted > 1 ? 0.5 : 0, .centered = wanted > 2}).setup(session);
    take_steps(session, 1);
    int64_t slots = 0;
    session.each_slot(p, [&](SlotKind, Tensor&) { ++slots; });
    EXPECT_EQ(slots, wanted);
  }
}

}  // namespace
}  // namespace huajin
