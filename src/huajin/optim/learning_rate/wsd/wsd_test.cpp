#include "huajin/optim/learning_rate/wsd/wsd.h"

#include <gtest/gtest.h>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(WsdSchedule, RefusesWarmUpAndCoolDownThatOverlap) {
  WsdScheduleConfig config;
  config.warmup.warmup = 0.5;
  config.cooldown = 0.6;
  EXPECT_THROW(WsdSchedule{config}, UserError);
}

// What follows a point in the stable part depends on the end of the budget only: cool-downs branch from one run.
TEST(WsdSchedule, IsConstantBeforeTheCoolDown) {
  for (double fraction = 0; fraction < 0.75; fraction += 0.05) EXPECT_EQ(wsd_shape(fraction, 0.25, false, 0), 1);
  EXPECT_NEAR(wsd_shape(0.875, 0.25, false, 0), 0.5, 1e-12);
}

}  // namespace
}  // namespace huajin
