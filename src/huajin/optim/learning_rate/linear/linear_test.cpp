#include "huajin/optim/learning_rate/linear/linear.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/golden.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(LinearSchedule, EqualsTheFormula) { expect_golden_schedule("linear"); }

TEST(LinearSchedule, RefusesAWarmUpLongerThanTheBudget) {
  LinearScheduleConfig config;
  config.warmup.warmup_steps = 100;
  const LinearSchedule schedule(config);
  EXPECT_THROW(schedule.check(99), UserError);
  EXPECT_NO_THROW(schedule.check(100));
  EXPECT_NO_THROW(schedule.check(std::numeric_limits<double>::infinity()));
}

TEST(LinearSchedule, RefusesTwoWarmUps) {
  LinearScheduleConfig config;
  config.warmup.warmup_steps = 10;
  config.warmup.warmup = 0.1;
  EXPECT_THROW(LinearSchedule{config}, UserError);
}

// The last of N updates starts at (N - 1) / N: the rate is small there, and zero only when the budget is gone.
TEST(LinearSchedule, EndsWhereTheBudgetEnds) {
  const LinearSchedule schedule({});
  Progress progress;
  progress.fraction = 0.99;
  EXPECT_NEAR(schedule.factor(progress), 0.01, 1e-12);
  progress.fraction = 1;
  EXPECT_EQ(schedule.factor(progress), 0);
}

}  // namespace
}  // namespace huajin
