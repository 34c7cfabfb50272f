#include "huajin/optim/learning_rate/exponential/exponential.h"

#include <gtest/gtest.h>

namespace huajin {
namespace {

TEST(ExponentialSchedule, FallsByTheSameRatioInEqualParts) {
  const double ratio = exponential_shape(0.1, 0.01);
  for (double u = 0; u < 0.85; u += 0.05) EXPECT_NEAR(exponential_shape(u + 0.1, 0.01) / exponential_shape(u, 0.01), ratio, 1e-14);
  EXPECT_NEAR(exponential_shape(0.5, 0.01), 0.1, 1e-15);
}

}  // namespace
}  // namespace huajin
