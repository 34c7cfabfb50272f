// Polynomial decay, "poly" of semantic segmentation: Chen et al., "DeepLab", arXiv 1606.00915, section 4.3 (power 0.9).
#pragma once
#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct PolynomialScheduleConfig : FallingConfig {
  double power = 0.9;
  void fields(Fields& f) {
    FallingConfig::fields(f);
    f.number("power", power, {.least = 0, .open = true}, "exponent of what is left of the budget; 1: linear");
  }
};

// final + (1 - final) (1 - u)^power, u in [0, 1]: part of what follows the warm-up
double polynomial_shape(double u, double final, double power);

class PolynomialSchedule : public ScheduleTechnique {
 public:
  explicit PolynomialSchedule(const PolynomialScheduleConfig& config);  // UserError: both warm-ups are given
};

}  // namespace huajin
