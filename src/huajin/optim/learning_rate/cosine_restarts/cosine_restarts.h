// Cosine decay with warm restarts: each cycle is `growth` times as long as the one before, and the last ends with the budget. Loshchilov & Hutter,
// "SGDR", ICLR 2017 (arXiv 1608.03983), equation 5, with T_mult = growth.
#pragma once
#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct CosineRestartsScheduleConfig {
  Warmup warmup;
  int64_t cycles = 3;
  double growth = 2, final = 0;
  void fields(Fields& f) {
    warmup.fields(f);
    f.integer("cycles", cycles, {.least = 1, .most = 1000}, "half cosines in the budget; 1: the cosine schedule");
    f.number("growth", growth, {.least = 1, .most = 10}, "length of a cycle over that of the one before (T_mult)");
    f.number("final", final, {.least = 0, .most = 1}, "factor at the end of a cycle");
  }
};

// The cycles begin at u = (1 + g + ... + g^(i-1)) / (1 + g + ... + g^(cycles-1)); within one, cosine_shape of the part that has passed.
double cosine_restarts_shape(double u, int64_t cycles, double growth, double final);

class CosineRestartsSchedule : public ScheduleTechnique {
 public:
  explicit CosineRestartsSchedule(const CosineRestartsScheduleConfig& config);  // UserError: both warm-ups are given
};

}  // namespace huajin
