// Exponential decay: every update multiplies the rate by the same number, chosen so that the rate is `final` of itself when the budget ends.
#pragma once
#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct ExponentialScheduleConfig {
  Warmup warmup;
  double final = 0.01;
  void fields(Fields& f) {
    warmup.fields(f);
    f.number("final", final, {.least = 0, .most = 1, .open = true}, "factor when the budget ends");
  }
};

// final^u, u in [0, 1]: part of what follows the warm-up. gamma^t with gamma = final^(1 / T).
double exponential_shape(double u, double final);

class ExponentialSchedule : public ScheduleTechnique {
 public:
  explicit ExponentialSchedule(const ExponentialScheduleConfig& config);  // UserError: both warm-ups are given
};

}  // namespace huajin
