#include "huajin/optim/learning_rate/sgd/sgd.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "conformance/bare_session.h"
#include "conformance/golden.h"

namespace huajin {
namespace {

TEST(Sgd, EqualsTheFormulaInFloat64) { expect_golden_optimizer("sgd", at::kDouble, 1e-12); }
TEST(Sgd, EqualsTheFormulaInFloat32) { expect_golden_optimizer("sgd", at::kFloat, 1e-6); }

// On w^2 / 2 heavy-ball momentum obeys w'' = (1 + mu - rate) w' - mu w exactly.
TEST(Sgd, MomentumObeysItsRecurrenceOnAQuadratic) {
  const double rate = 0.3, mu = 0.7;
  BareSession session;
  Parameter& p = session.add("w", at::ones({1}, at::kDouble));
  Sgd({.learning_rate = rate, .momentum = mu, .weight_decay = 0, .nesterov = false}).setup(session);
  double before = 1, now = 1 - rate;
  for (int step = 0; step < 12; ++step) {
    p.grad = p.value.clone();
    session.optimizer->begin(session.step(session.at(step, 0)), 1);
    session.optimizer->step(session.parameters());
    EXPECT_NEAR(p.value.item<double>(), now, 1e-14) << step;
    const double next = (1 + mu - rate) * now - mu * before;
    before = now;
    now = next;
  }
}

TEST(Sgd, KeepsNoVelocityWithoutMomentum) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  p.grad = at::ones({2}, at::kDouble);
  Sgd({.momentum = 0}).setup(session);
  session.optimizer->begin(session.step(), 1);
  session.optimizer->step(session.parameters());
  int slots = 0;
  session.each_slot(p, [&](SlotKind, Tensor&) { ++slots; });
  EXPECT_EQ(slots, 0);
}

TEST(Sgd, SaysThatTheWeightsChanged) {  // working copies in bfloat16 are renewed by version
  BareSession session;
  Parameter& p = session.add("w", at::ones({2, 2}, at::kFloat));
  p.grad = at::ones({2, 2}, at::kFloat);
  Sgd({}).setup(session);
  const auto version = p.value._version();
  session.optimizer->begin(session.step(), 1);
  session.optimizer->step(session.parameters());
  EXPECT_GT(p.value._version(), version);
}

}  // namespace
}  // namespace huajin
