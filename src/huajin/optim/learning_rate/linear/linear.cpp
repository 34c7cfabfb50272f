#include "huajin/optim/learning_rate/linear/linear.h"

namespace huajin {

double linear_shape(double u, double final) { return final + (1 - final) * (1 - u); }

LinearSchedule::LinearSchedule(const LinearScheduleConfig& config)
    : ScheduleTechnique("linear", config.warmup, [config](double fraction) { return linear_shape(after_warmup(config.warmup, fraction), config.final); }) {}

}  // namespace huajin
