#include "huajin/optim/learning_rate/linear/linear.h"

#include <gtest/gtest.h>

namespace huajin {
namespace {

// The last of N updates starts at (N - 1) / N: the rate is small there, and zero only when the budget is gone.
TEST(LinearSchedule, EndsWhereTheBudgetEnds) {
  EXPECT_NEAR(linear_shape(0.99, 0), 0.01, 1e-12);
  EXPECT_EQ(linear_shape(1, 0), 0);
  EXPECT_EQ(linear_shape(0, 0.3), 1);
}

}  // namespace
}  // namespace huajin
