#include "huajin/optim/objective/gsam/gsam.h"

#include <gtest/gtest.h>

#include "huajin/optim/objective/test_quadratic.h"
#include "huajin/optim/objective/sam/sam.h"

namespace huajin {
namespace {

TEST(Gsam, EqualsTheClosedFormOnAQuadratic) {
  Quadratic f;
  const Tensor w = f.w(), g = f.h.matmul(w), perturbed = f.h.matmul(w + 0.3 * g / g.norm());
  Gsam gsam({.rho = 0.3, .final_rho = 0.3, .alpha = 0.4});
  const Tensor got = f.gradient_of(gsam);
  const Tensor across = g - g.dot(perturbed) / perturbed.dot(perturbed) * perturbed;
  EXPECT_LT(farthest(got, perturbed - 0.4 * across), 1e-10 * perturbed.norm().item().toDouble());
  EXPECT_LT(std::abs(across.dot(perturbed).item().toDouble()), 1e-9);
  EXPECT_GT(across.norm().item().toDouble(), 1e-3);
  EXPECT_TRUE(f.w().equal(w));
  EXPECT_EQ(f.passes.size(), 2u);
}

// The angle between the two gradients is small: float32 must still find what lies across.
TEST(Gsam, FindsSmallAnglesInFloat32) {
  Quadratic f, wide;
  Gsam narrow({.rho = 1e-2, .final_rho = 1e-2, .alpha = 1}), sam({.rho = 1e-2, .final_rho = 1e-2, .alpha = 0});
  Quadratic single(at::kFloat);
  const Tensor wanted = wide.gradient_of(narrow) - f.gradient_of(sam);
  const Tensor got = single.gradient_of(narrow).to(at::kDouble) - f.gradient_of(sam);
  EXPECT_LT(farthest(got, wanted), 0.02 * wanted.abs().max().item().toDouble());
}

TEST(Gsam, IsSamWithoutAlpha) {
  Quadratic f, g;
  Gsam gsam({.rho = 0.2, .final_rho = 0.2, .alpha = 0});
  Sam sam({.rho = 0.2});
  EXPECT_TRUE(f.gradient_of(gsam).equal(g.gradient_of(sam)));
}

TEST(Gsam, ShrinksItsRadiusWithTheBudget) {
  Quadratic f, g;
  Gsam falling({.rho = 0.2, .final_rho = 0, .alpha = 0.3}), half({.rho = 0.1, .final_rho = 0.1, .alpha = 0.3});
  EXPECT_LT(farthest(f.gradient_of(falling, f.session.at(5, 0.5)), g.gradient_of(half)), 1e-12);
  f.gradient_of(falling, f.session.at(10, 1));
  EXPECT_EQ(f.passes.size(), 1u);  // nothing is left of it
}

}  // namespace
}  // namespace huajin
