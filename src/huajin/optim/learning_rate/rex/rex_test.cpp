#include "huajin/optim/learning_rate/rex/rex.h"

#include <gtest/gtest.h>

#include "huajin/optim/learning_rate/linear/linear.h"

namespace huajin {
namespace {

TEST(RexSchedule, StaysAboveLinearAndFallsFasterAndFaster) {
  double fall = 0;
  for (int i = 1; i < 100; ++i) {
    EXPECT_GT(rex_shape(i / 100.0, 0), linear_shape(i / 100.0, 0));
    const double here = rex_shape((i - 1) / 100.0, 0) - rex_shape(i / 100.0, 0);
    EXPECT_GT(here, fall);
    fall = here;
  }
  EXPECT_NEAR(rex_shape(0.5, 0), 2.0 / 3, 1e-15);
}

// It is its own mirror image in the diagonal: f(f(u)) = u, as u = (1 - y) / (1/2 + (1 - y) / 2) with 1 - y for the rate.
TEST(RexSchedule, IsTheReflectionOfItsInverse) {
  for (double u = 0; u <= 1; u += 0.05) {
    const double y = rex_shape(u, 0);
    EXPECT_NEAR(u, 2 * (1 - y) / (2 - y), 1e-14);
  }
}

}  // namespace
}  // namespace huajin
