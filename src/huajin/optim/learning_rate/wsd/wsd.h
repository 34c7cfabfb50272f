// Warm-up, stable, decay: constant, then a short cool-down at the end. Hu et al., "MiniCPM", arXiv 2404.06395, section 4; the 1 - sqrt form: Haegele
// et al., arXiv 2405.18392.
#pragma once
#include <string>

#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct WsdScheduleConfig {
  Warmup warmup;
  double cooldown = 0.2, final = 0;
  std::string shape = "linear";
  void fields(Fields& f) {
    warmup.fields(f);
    f.number("cooldown", cooldown, {.least = 0, .most = 1, .open = true}, "fraction of the budget, at its end, in which the rate falls");
    f.text("shape", shape, {"linear", "one_minus_sqrt"}, "how it falls");
    f.number("final", final, {.least = 0, .most = 1}, "factor when the budget ends");
  }
};

// final + (1 - final) s(u), u = (fraction - (1 - cooldown)) / cooldown in [0, 1]; s = 1 - u or 1 - sqrt(u)
double wsd_shape(double fraction, double cooldown, bool sqrt, double final);

class WsdSchedule : public ScheduleTechnique {
 public:
  explicit WsdSchedule(const WsdScheduleConfig& config);  // UserError: both warm-ups are given, or warm-up and cool-down overlap
};

}  // namespace huajin
