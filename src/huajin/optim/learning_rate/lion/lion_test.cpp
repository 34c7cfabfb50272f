#include "huajin/optim/learning_rate/lion/lion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"

namespace huajin {
namespace {

TEST(Lion, EqualsTheFormulaInFloat64) { expect_golden_optimizer("lion", at::kDouble, 1e-12); }
TEST(Lion, EqualsTheFormulaInFloat32) { expect_golden_optimizer("lion", at::kFloat, 1e-6); }

TEST(Lion, MovesEachWeightByTheRateWhateverTheGradientsScale) {
  for (const double scale : {1e-12, 1.0, 1e12}) {
    BareSession session;
    Parameter& p = session.add("w", at::zeros_like(at::ones({3}, at::kDouble)));
    p.grad = at::tensor({-3.0, 0.0, 1e-3}, at::kDouble) * scale;
    Lion({.learning_rate = 0.25, .weight_decay = 0}).setup(session);
    session.optimizer->begin(session.step(), 0.5);
    session.optimizer->step(session.parameters());
    EXPECT_TRUE(p.value.equal(at::tensor({0.125, 0.0, -0.125}, at::kDouble))) << scale << ": " << p.value;
  }
}

TEST(Lion, IsSignumWithEqualShares) {  // w moves along the sign of the momentum that has taken the gradient in
  BareSession session;
  Parameter& p = session.add("w", at::ones({3}, at::kDouble));
  Lion({.learning_rate = 0.5, .beta1 = 0.75, .beta2 = 0.75, .weight_decay = 0}).setup(session);
  const double gradients[3][3] = {{4, -1, 1e-3}, {-1, 8, -1}, {-1, -9, 0.1}};
  double m[3] = {0, 0, 0}, w[3] = {1, 1, 1};
  for (int step = 0; step < 3; ++step) {
    const double* g = gradients[step];
    p.grad = at::tensor({g[0], g[1], g[2]}, at::kDouble);
    take_steps(session, 1, step);
    for (int i = 0; i < 3; ++i) {
      m[i] = 0.75 * m[i] + 0.25 * g[i];
      w[i] -= m[i] > 0 ? 0.5 : -0.5;
      EXPECT_EQ(p.value[i].item<double>(), w[i]) << step << i;
    }
  }
}

TEST(Lion, KeepsOneTensorAParameter) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  p.grad = at::ones({2}, at::kDouble);
  Lion({}).setup(session);
  session.optimizer->begin(session.step(), 1);
  session.optimizer->step(session.parameters());
  int slots = 0;
  session.each_slot(p, [&](SlotKind kind, Tensor& slot) {
    ++slots;
    EXPECT_EQ(kind, SlotKind::kGradient);
    EXPECT_NEAR(slot[0].item<double>(), 0.01, 1e-15);  // (1 - beta2) g: beta1 has no part in the momentum
  });
  EXPECT_EQ(slots, 1);
}

}  // namespace
}  // namespace huajin
