#include "huajin/optim/learning_rate/wsd/wsd.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/golden.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(WsdSchedule, EqualsTheFormula) { expect_golden_schedule("wsd"); }

TEST(WsdSchedule, RefusesAWarmUpLongerThanTheBudget) {
  WsdScheduleConfig config;
  config.warmup.warmup_steps = 100;
  const WsdSchedule schedule(config);
  EXPECT_THROW(schedule.check(99), UserError);
  EXPECT_NO_THROW(schedule.check(100));
  EXPECT_NO_THROW(schedule.check(std::numeric_limits<double>::infinity()));
}

TEST(WsdSchedule, RefusesTwoWarmUps) {
  WsdScheduleConfig config;
  config.warmup.warmup_steps = 10;
  config.warmup.warmup = 0.1;
  EXPECT_THROW(WsdSchedule{config}, UserError);
}

TEST(WsdSchedule, RefusesWarmUpAndCoolDownThatOverlap) {
  WsdScheduleConfig config;
  config.warmup.warmup = 0.5;
  config.cooldown = 0.6;
  EXPECT_THROW(WsdSchedule{config}, UserError);
}

// What follows a point in the stable part depends on the end of the budget only: cool-downs branch from one run.
TEST(WsdSchedule, IsConstantBeforeTheCoolDown) {
  WsdScheduleConfig config;
  config.cooldown = 0.25;
  const WsdSchedule schedule(config);
  Progress progress;
  for (progress.fraction = 0; progress.fraction < 0.75; progress.fraction += 0.05) EXPECT_EQ(schedule.factor(progress), 1);
  progress.fraction = 0.875;
  EXPECT_NEAR(schedule.factor(progress), 0.5, 1e-12);
}

}  // namespace
}  // namespace huajin
