// Linear decay from the end of warm-up to the end of the budget. Li et al., "Budgeted Training", ICLR 2020, section 3; to zero: Bergsma et al.,
// arXiv 2502.15938.
#pragma once
#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct LinearScheduleConfig : FallingConfig {};

// final + (1 - final) (1 - u), u in [0, 1]: part of what follows the warm-up
double linear_shape(double u, double final);

class LinearSchedule : public ScheduleTechnique {
 public:
  explicit LinearSchedule(const LinearScheduleConfig& config);  // UserError: both warm-ups are given
};

}  // namespace huajin
