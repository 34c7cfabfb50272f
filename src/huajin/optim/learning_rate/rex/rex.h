// Reflected exponential: falls slower than linear at first and faster at last. Chen, Wolfe & Kyrillidis, "REX: Revisiting Budgeted Training with an
// Improved Schedule", MLSys 2022 (arXiv 2107.04197), section 4.
#pragma once
#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct RexScheduleConfig : FallingConfig {};

// final + (1 - final) (1 - u) / (1/2 + (1 - u) / 2), u in [0, 1]: part of what follows the warm-up
double rex_shape(double u, double final);

class RexSchedule : public ScheduleTechnique {
 public:
  explicit RexSchedule(const RexScheduleConfig& config);  // UserError: both warm-ups are given
};

}  // namespace huajin
