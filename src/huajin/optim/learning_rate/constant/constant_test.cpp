#include "huajin/optim/learning_rate/constant/constant.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/golden.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(ConstantSchedule, EqualsTheFormula) { expect_golden_schedule("constant"); }

TEST(ConstantSchedule, RefusesAWarmUpLongerThanTheBudget) {
  ConstantScheduleConfig config;
  config.warmup.warmup_steps = 100;
  const ConstantSchedule schedule(config);
  EXPECT_THROW(schedule.check(99), UserError);
  EXPECT_NO_THROW(schedule.check(100));
  EXPECT_NO_THROW(schedule.check(std::numeric_limits<double>::infinity()));
}

TEST(ConstantSchedule, RefusesTwoWarmUps) {
  ConstantScheduleConfig config;
  config.warmup.warmup_steps = 10;
  config.warmup.warmup = 0.1;
  EXPECT_THROW(ConstantSchedule{config}, UserError);
}

}  // namespace
}  // namespace huajin
