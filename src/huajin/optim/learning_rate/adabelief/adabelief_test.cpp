#include "huajin/optim/learning_rate/adabelief/adabelief.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"

namespace huajin {
namespace {

TEST(Adabelief, EqualsTheFormulaInFloat64) { expect_golden_optimizer("adabelief", at::kDouble, 1e-12); }
TEST(Adabelief, EqualsTheFormulaInFloat32) { expect_golden_optimizer("adabelief", at::kFloat, 1e-5); }

// What the name says: a gradient that comes as expected is believed, and the step grows; Adam's would stay at the rate.
TEST(Adabelief, StepsGrowWhileTheGradientStaysTheSame) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({1}, at::kDouble));
  p.decay = false;
  p.grad = at::full({1}, 0.01, at::kDouble);
  Adabelief({.learning_rate = 1e-3, .beta2 = 0.9}).setup(session);
  double last = 1, before = 0;
  for (int step = 0; step < 60; ++step) {
    take_steps(session, 1, step);
    const double moved = last - p.value[0].item<double>();
    if (step == 20) before = moved;
    if (step == 59) { EXPECT_GT(moved, 3 * before); }
    last = p.value[0].item<double>();
  }
}

}  // namespace
}  // namespace huajin
