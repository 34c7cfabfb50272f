#include "huajin/optim/learning_rate/polynomial/polynomial.h"

#include <cmath>

namespace huajin {

double polynomial_shape(double u, double final, double power) { return final + (1 - final) * std::pow(1 - u, power); }

PolynomialSchedule::PolynomialSchedule(const PolynomialScheduleConfig& config)
    : ScheduleTechnique("polynomial", config.warmup, [config](double fraction) {
        return polynomial_shape(after_warmup(config.warmup, fraction), config.final, config.power);
      }) {}

}  // namespace huajin
