// Half a cosine from the end of warm-up to the end of the budget. Loshchilov & Hutter, "SGDR", ICLR 2017, equation 5 with one cycle.
#pragma once
#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct CosineScheduleConfig : FallingConfig {};

// final + (1 - final) (1 + cos(pi u)) / 2, u in [0, 1]: part of what follows the warm-up
double cosine_shape(double u, double final);

class CosineSchedule : public ScheduleTechnique {
 public:
  explicit CosineSchedule(const CosineScheduleConfig& config);  // UserError: both warm-ups are given
};

}  // namespace huajin
