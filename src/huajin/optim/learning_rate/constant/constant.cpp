#include "huajin/optim/learning_rate/constant/constant.h"

#include <limits>

namespace huajin {

ConstantSchedule::ConstantSchedule(const ConstantScheduleConfig& config) : config_(config) {
  check_warmup(config.warmup, std::numeric_limits<double>::infinity());
}

void ConstantSchedule::setup(Session& session) { session.set_schedule(std::make_unique<ConstantSchedule>(*this)); }

double ConstantSchedule::factor(const Progress& progress) const { return warmup_factor(config_.warmup, progress); }

}  // namespace huajin
