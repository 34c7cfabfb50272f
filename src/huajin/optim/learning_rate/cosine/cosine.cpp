#include "huajin/optim/learning_rate/cosine/cosine.h"

#include <cmath>
#include <numbers>

namespace huajin {

double cosine_shape(double u, double final) { return final + (1 - final) * 0.5 * (1 + std::cos(std::numbers::pi * u)); }

CosineSchedule::CosineSchedule(const CosineScheduleConfig& config)
    : ScheduleTechnique("cosine", config.warmup, [config](double fraction) { return cosine_shape(after_warmup(config.warmup, fraction), config.final); }) {}

}  // namespace huajin
