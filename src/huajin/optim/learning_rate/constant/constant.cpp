#include "huajin/optim/learning_rate/constant/constant.h"

namespace huajin {

ConstantSchedule::ConstantSchedule(const ConstantScheduleConfig& config) : ScheduleTechnique("constant", config.warmup, [](double) { return 1.0; }) {}

}  // namespace huajin
