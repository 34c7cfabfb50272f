#include "huajin/optim/learning_rate/cosine_restarts/cosine_restarts.h"

#include <gtest/gtest.h>

#include "huajin/optim/learning_rate/cosine/cosine.h"

namespace huajin {
namespace {

TEST(CosineRestartsSchedule, RestartsAtT0TimesTheSumOfPowers) {  // T0 (1 + k + k^2 ...): of 70 updates with k = 2, at 10 and 30
  std::vector<int> restarts;
  for (int step = 1; step < 70; ++step)
    if (cosine_restarts_shape(step / 70.0, 3, 2, 0) > cosine_restarts_shape((step - 1) / 70.0, 3, 2, 0)) restarts.push_back(step);
  EXPECT_EQ(restarts, (std::vector<int>{10, 30}));
  for (int step : restarts) EXPECT_NEAR(cosine_restarts_shape(step / 70.0, 3, 2, 0), 1, 1e-14);
}

TEST(CosineRestartsSchedule, OfOneCycleIsTheCosine) {
  for (double u = 0; u <= 1; u += 0.0625) EXPECT_EQ(cosine_restarts_shape(u, 1, 2, 0.1), cosine_shape(u, 0.1));
}

TEST(CosineRestartsSchedule, RepeatsItselfWithEqualCycles) {
  for (double u = 0; u < 0.25; u += 0.01)
    for (int cycle = 1; cycle < 4; ++cycle) EXPECT_NEAR(cosine_restarts_shape(u + 0.25 * cycle, 4, 1, 0), cosine_restarts_shape(u, 4, 1, 0), 1e-13);
}

}  // namespace
}  // namespace huajin
