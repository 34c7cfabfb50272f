#include "huajin/optim/learning_rate/linear/linear.h"

#include <limits>

namespace huajin {

LinearSchedule::LinearSchedule(const LinearScheduleConfig& config) : config_(config) {
  check_warmup(config.warmup, std::numeric_limits<double>::infinity());
}

void LinearSchedule::setup(Session& session) { session.set_schedule(std::make_unique<LinearSchedule>(*this)); }

double LinearSchedule::factor(const Progress& progress) const {
  return warmup_factor(config_.warmup, progress) * (config_.final + (1 - config_.final) * (1 - after_warmup(config_.warmup, progress)));
}

}  // namespace huajin
