#include "huajin/optim/learning_rate/step/step.h"

#include <gtest/gtest.h>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

// torch::optim::StepLR drops one step late the first time; here the update that begins at the milestone has the lower rate, every time.
TEST(StepSchedule, DropsAtTheUpdateThatBeginsAtTheMilestone) {
  const std::vector<double> thirds = parse_milestones("0.3333333333333333, 0.6666666666666666");
  const double wanted[] = {1, 1, 0.1, 0.1, 0.01, 0.01};
  for (int step = 0; step < 6; ++step) EXPECT_NEAR(step_shape(step / 6.0, thirds, 0.1), wanted[step], 1e-15) << step;
}

TEST(StepSchedule, ReadsMilestonesAndRefusesWhatIsNone) {
  EXPECT_EQ(parse_milestones("0.3,0.6 , 0.9"), (std::vector<double>{0.3, 0.6, 0.9}));
  for (const char* wrong : {"", "0.5,", "0.5 0.6", "0.7, 0.6", "0.5, 0.5", "0, 0.5", "0.5, 1", "half", "nan", "0.5,, 0.6", "30, 60"})
    EXPECT_THROW(parse_milestones(wrong), UserError) << wrong;
}

}  // namespace
}  // namespace huajin
