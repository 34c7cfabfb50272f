#include "huajin/optim/learning_rate/cosine/cosine.h"

#include <gtest/gtest.h>

namespace huajin {
namespace {

TEST(CosineSchedule, IsHalfWayAtHalfOfTheBudgetAndNeverRises) {
  EXPECT_NEAR(cosine_shape(0.5, 0), 0.5, 1e-12);
  double last = 1;
  for (double u = 0; u <= 1; u += 0.01) {
    EXPECT_LE(cosine_shape(u, 0.1), last);
    last = cosine_shape(u, 0.1);
  }
}

}  // namespace
}  // namespace huajin
