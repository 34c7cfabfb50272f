#include "huajin/optim/objective/gradient_norm_penalty/gradient_norm_penalty.h"

#include <gtest/gtest.h>

#include "huajin/optim/objective/test_quadratic.h"
#include "huajin/optim/objective/sam/sam.h"

namespace huajin {
namespace {

// On a quadratic the difference is exact: the gradient of F + c |grad F| is g + c H g / |g|.
TEST(GradientNormPenalty, IsTheGradientOfThePenalisedLossOnAQuadratic) {
  Quadratic f;
  const Tensor w = f.w(), g = f.h.matmul(w);
  GradientNormPenalty penalty({.radius = 0.02, .balance = 0.4});
  const Tensor got = f.gradient_of(penalty);
  EXPECT_LT(farthest(got, g + 0.4 * 0.02 * f.h.matmul(g) / g.norm()), 1e-11);
  EXPECT_TRUE(f.w().equal(w));
  EXPECT_EQ(f.passes.size(), 2u);
}

// And that gradient is what finite differences of the penalised loss say.
TEST(GradientNormPenalty, AgreesWithFiniteDifferences) {
  Quadratic f;
  GradientNormPenalty penalty({.radius = 0.02, .balance = 0.4});
  const Tensor got = f.gradient_of(penalty);
  const auto loss = [&](const Tensor& w) { return w.dot(f.h.matmul(w)).item().toDouble() / 2 + 0.4 * 0.02 * f.h.matmul(w).norm().item().toDouble(); };
  for (int i = 0; i < 5; ++i) {
    Tensor up = f.w().clone(), down = f.w().clone();
    up[i] += 1e-5, down[i] -= 1e-5;
    EXPECT_NEAR(got[i].item().toDouble(), (loss(up) - loss(down)) / 2e-5, 1e-7);
  }
}

TEST(GradientNormPenalty, IsSamAtOneAndNothingAtZero) {
  Quadratic f, g;
  GradientNormPenalty all({.radius = 0.2, .balance = 1}), none({.balance = 0});
  Sam sam({.rho = 0.2});
  EXPECT_TRUE(f.gradient_of(all).equal(g.gradient_of(sam)));
  EXPECT_TRUE(f.gradient_of(none).equal(f.h.matmul(f.w())));
  EXPECT_EQ(f.passes.size(), 1u);
}

}  // namespace
}  // namespace huajin
