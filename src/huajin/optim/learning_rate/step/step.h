// Step decay: the rate is multiplied by `factor` at each milestone. The milestones are fractions of the budget, so that a longer run keeps its shape.
// The 30-60-90 schedule of ResNets: He et al., "Deep Residual Learning", CVPR 2016, section 3.4.
#pragma once
#include <string>
#include <vector>

#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct StepScheduleConfig {
  Warmup warmup;
  std::string milestones = "0.5, 0.75";
  double factor = 0.1;
  void fields(Fields& f) {
    warmup.fields(f);
    f.text("milestones", milestones, {}, "fractions of the budget at which the rate falls, rising, with commas between");
    f.number("factor", factor, {.least = 0, .most = 1, .open = true}, "of the rate at each milestone; 1: off");
  }
};

// "0.5, 0.75" -> {0.5, 0.75}. UserError: not numbers within (0, 1) that rise.
std::vector<double> parse_milestones(const std::string& text);
// factor^n, n: milestones that are reached. The update that begins at a milestone has the lower rate.
double step_shape(double fraction, const std::vector<double>& milestones, double factor);

class StepSchedule : public ScheduleTechnique {
 public:
  explicit StepSchedule(const StepScheduleConfig& config);  // UserError: both warm-ups are given, or wrong milestones
};

}  // namespace huajin
