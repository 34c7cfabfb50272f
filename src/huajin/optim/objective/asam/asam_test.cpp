#include "huajin/optim/objective/asam/asam.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "huajin/optim/objective/test_quadratic.h"
#include "huajin/optim/objective/sam/sam.h"

namespace huajin {
namespace {

TEST(Asam, EqualsTheClosedFormOnAQuadratic) {
  Quadratic f;
  const Tensor w = f.w(), g = f.h.matmul(w);
  Asam asam({.rho = 0.3, .eta = 0.1});
  const Tensor got = f.gradient_of(asam);
  Tensor t = w.abs() + 0.1;
  t.slice(0, 3, 5).fill_(1);  // the bias
  const Tensor e = 0.3 * t.square() * g / (t * g).norm();
  EXPECT_LT(farthest(got, f.h.matmul(w + e)), 1e-12);
  EXPECT_TRUE(f.w().equal(w));
  ASSERT_EQ(f.passes.size(), 2u);
  EXPECT_TRUE(f.passes[0].probe);
  EXPECT_FALSE(f.passes[1].probe);
}

// y = v u x with one layer scaled by a and the other by 1 / a: the same function. ASAM with eta = 0 sees the same loss at the worst point, SAM doesn't.
double worst_loss(Technique& technique, double a) {
  BareSession session;
  Parameter& u = session.add("u.weight", at::tensor({0.7, -1.2, 0.4}, at::kDouble) * a);
  Parameter& v = session.add("v.weight", at::tensor({1.1, 0.3, -0.9}, at::kDouble) / a);
  double loss = 0;
  Step step = session.step();
  technique.gradients(step, {}, [&](Pass) {
    const Tensor residual = (u.value * v.value).sum() - 2;
    loss = residual.square().item().toDouble() / 2;
    u.grad = residual * v.value;
    v.grad = residual * u.value;
    return true;
  });
  return loss;
}
TEST(Asam, DoesNotSeeARescalingOfLayers) {
  Asam asam({.rho = 0.4, .eta = 0});
  EXPECT_NEAR(worst_loss(asam, 10), worst_loss(asam, 1), 1e-12);
  EXPECT_GT(worst_loss(asam, 1), 0);
  Sam sam({.rho = 0.4});
  EXPECT_GT(std::abs(worst_loss(sam, 10) - worst_loss(sam, 1)), 0.1);  // the test can tell
}

TEST(Asam, TakesTheSecondPassOnlyEveryFewSteps) {
  Quadratic f;
  Asam asam({.every = 3}), off({.rho = 0});
  size_t passes = 0;
  for (int i = 0; i < 6; ++i) f.gradient_of(asam, f.session.at(i, 0)), passes += f.passes.size();
  EXPECT_EQ(passes, 8u);
  f.gradient_of(off);
  EXPECT_EQ(f.passes.size(), 1u);
}

}  // namespace
}  // namespace huajin
