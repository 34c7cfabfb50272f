#include "huajin/optim/learning_rate/adamw/adamw.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"

namespace huajin {
namespace {

TEST(Adamw, EqualsTheFormulaInFloat64) { expect_golden_optimizer("adamw", at::kDouble, 1e-12); }
TEST(Adamw, EqualsTheFormulaInFloat32) { expect_golden_optimizer("adamw", at::kFloat, 1e-6); }

TEST(Adamw, DecaysByItselfWithoutAGradientAndOnlyWhereAllowed) {
  BareSession session;
  session.add("matrix", at::ones({3, 3}, at::kDouble)).decay = true;
  session.add("bias", at::ones({3}, at::kDouble)).decay = false;
  Adamw({.learning_rate = 0.5, .weight_decay = 0.2}).setup(session);
  for (int step = 0; step < 7; ++step) {
    session.optimizer->begin(session.step(session.at(step, 0)), 1);
    session.optimizer->step(session.parameters());
  }
  EXPECT_NEAR(session.parameters()[0]->value[1][2].item<double>(), std::pow(1 - 0.5 * 0.2, 7), 1e-14);
  EXPECT_EQ(session.parameters()[1]->value[1].item<double>(), 1);
}

TEST(Adamw, ReadsAGradientThatIsNotContiguous) {
  BareSession session, straight;
  for (BareSession* s : {&session, &straight}) {
    s->add("matrix", at::ones({2, 3}, at::kDouble));
    Adamw({}).setup(*s);
  }
  const Tensor g = at::full({3, 2}, 1.0, at::kDouble).cumsum(0).cumsum(1).t();
  session.parameters()[0]->grad = g;
  straight.parameters()[0]->grad = g.contiguous();
  for (BareSession* s : {&session, &straight}) {
    s->optimizer->begin(s->step(), 1);
    s->optimizer->step(s->parameters());
  }
  EXPECT_TRUE(session.parameters()[0]->value.equal(straight.parameters()[0]->value));
}

TEST(Adamw, ReportsTheRateOfTheUpdate) {
  BareSession session;
  session.add("matrix", at::ones({2, 2}, at::kDouble));
  Adamw({.learning_rate = 0.4}).setup(session);
  session.optimizer->begin(session.step(), 0.25);
  EXPECT_DOUBLE_EQ(session.optimizer->learning_rate(), 0.1);
}

TEST(Adamw, SaysThatTheWeightsChanged) {  // working copies in bfloat16 are renewed by version
  BareSession session;
  Parameter& p = session.add("w", at::ones({2, 2}, at::kFloat));
  p.grad = at::ones({2, 2}, at::kFloat);
  Adamw({}).setup(session);
  const auto version = p.value._version();
  session.optimizer->begin(session.step(), 1);
  session.optimizer->step(session.parameters());
  EXPECT_GT(p.value._version(), version);
}

}  // namespace
}  // namespace huajin
