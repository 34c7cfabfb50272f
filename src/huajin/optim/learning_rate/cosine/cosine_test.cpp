#include "huajin/optim/learning_rate/cosine/cosine.h"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/golden.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(CosineSchedule, EqualsTheFormula) { expect_golden_schedule("cosine"); }

TEST(CosineSchedule, RefusesAWarmUpLongerThanTheBudget) {
  CosineScheduleConfig config;
  config.warmup.warmup_steps = 100;
  const CosineSchedule schedule(config);
  EXPECT_THROW(schedule.check(99), UserError);
  EXPECT_NO_THROW(schedule.check(100));
  EXPECT_NO_THROW(schedule.check(std::numeric_limits<double>::infinity()));
}

TEST(CosineSchedule, RefusesTwoWarmUps) {
  CosineScheduleConfig config;
  config.warmup.warmup_steps = 10;
  config.warmup.warmup = 0.1;
  EXPECT_THROW(CosineSchedule{config}, UserError);
}

TEST(CosineSchedule, IsHalfWayAtHalfOfTheBudgetAndNeverRisesAfterWarmUp) {
  const CosineSchedule schedule({});
  Progress progress;
  progress.fraction = 0.5;
  EXPECT_NEAR(schedule.factor(progress), 0.5, 1e-12);
  double last = 1;
  for (progress.fraction = 0; progress.fraction <= 1; progress.fraction += 0.01) {
    EXPECT_LE(schedule.factor(progress), last);
    last = schedule.factor(progress);
  }
}

}  // namespace
}  // namespace huajin
