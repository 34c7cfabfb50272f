#include "huajin/optim/learning_rate/one_cycle/one_cycle.h"

#include <gtest/gtest.h>

#include <cmath>

namespace huajin {
namespace {

TEST(OneCycleSchedule, HasOnePeakAndNoJump) {
  for (const bool linear : {false, true}) {
    EXPECT_EQ(one_cycle_shape(0, 0.04, 0.25, 0.001, linear), 0.04);
    EXPECT_EQ(one_cycle_shape(0.25, 0.04, 0.25, 0.001, linear), 1);
    EXPECT_NEAR(one_cycle_shape(1, 0.04, 0.25, 0.001, linear), 0.001, 1e-15);
    for (int i = 1; i <= 4096; ++i) {
      const double before = one_cycle_shape((i - 1) / 4096.0, 0.04, 0.25, 0.001, linear), now = one_cycle_shape(i / 4096.0, 0.04, 0.25, 0.001, linear);
      EXPECT_EQ(now > before, i <= 1024) << i;
      EXPECT_LT(std::abs(now - before), 2e-3) << i;
    }
  }
}

TEST(OneCycleSchedule, WithoutARiseStartsAtThePeak) { EXPECT_EQ(one_cycle_shape(0, 0.04, 0, 0, false), 1); }

}  // namespace
}  // namespace huajin
