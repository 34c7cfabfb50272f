#include "huajin/optim/learning_rate/constant/constant.h"

#include <gtest/gtest.h>

namespace huajin {
namespace {

TEST(ConstantSchedule, IsOneFromTheEndOfTheWarmUp) {
  ConstantScheduleConfig config;
  config.warmup.warmup = 0.25;
  const ConstantSchedule technique(config);
  Progress progress;
  for (progress.fraction = 0.25; progress.fraction <= 1; progress.fraction += 0.125) EXPECT_EQ(technique.schedule().factor(progress), 1);
}

}  // namespace
}  // namespace huajin
