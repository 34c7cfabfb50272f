#include "huajin/optim/learning_rate/polynomial/polynomial.h"

#include <gtest/gtest.h>

#include "huajin/optim/learning_rate/linear/linear.h"

namespace huajin {
namespace {

TEST(PolynomialSchedule, OfPowerOneIsLinear) {
  for (double u = 0; u <= 1; u += 0.0625) EXPECT_EQ(polynomial_shape(u, 0.125, 1), linear_shape(u, 0.125));
}

TEST(PolynomialSchedule, IsOrderedByItsPower) {
  for (double u = 0.1; u < 0.95; u += 0.1) {
    EXPECT_GT(polynomial_shape(u, 0, 0.5), polynomial_shape(u, 0, 1));
    EXPECT_GT(polynomial_shape(u, 0, 1), polynomial_shape(u, 0, 2));
  }
  EXPECT_EQ(polynomial_shape(1, 0, 0.5), 0);
}

}  // namespace
}  // namespace huajin
