#include "huajin/optim/learning_rate/rex/rex.h"

namespace huajin {

double rex_shape(double u, double final) { return final + (1 - final) * (1 - u) / (0.5 + 0.5 * (1 - u)); }

RexSchedule::RexSchedule(const RexScheduleConfig& config)
    : ScheduleTechnique("rex", config.warmup, [config](double fraction) { return rex_shape(after_warmup(config.warmup, fraction), config.final); }) {}

}  // namespace huajin
