#include "huajin/optim/learning_rate/cyclic/cyclic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace huajin {
namespace {

TEST(CyclicSchedule, PeaksInTheMiddleOfEachCycleAndDoesNotJump) {
  for (const bool halving : {false, true})
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(cyclic_shape((i + 0.5) / 4, 4, 0.2, halving), 0.2 + 0.8 * (halving ? std::pow(0.5, i) : 1), 1e-15);
      EXPECT_NEAR(cyclic_shape(i / 4.0, 4, 0.2, halving), 0.2, 1e-15);
      EXPECT_NEAR(cyclic_shape((i + 1) / 4.0 - 1e-9, 4, 0.2, halving), 0.2, 1e-8);
    }
  EXPECT_NEAR(cyclic_shape(1, 4, 0.2, true), 0.2, 1e-15);
}

}  // namespace
}  // namespace huajin
