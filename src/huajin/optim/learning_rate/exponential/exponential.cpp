#include "huajin/optim/learning_rate/exponential/exponential.h"

#include <cmath>

namespace huajin {

double exponential_shape(double u, double final) { return std::pow(final, u); }

ExponentialSchedule::ExponentialSchedule(const ExponentialScheduleConfig& config)
    : ScheduleTechnique("exponential", config.warmup,
                        [config](double fraction) { return exponential_shape(after_warmup(config.warmup, fraction), config.final); }) {}

}  // namespace huajin
