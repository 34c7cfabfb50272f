#include "huajin/optim/learning_rate/cosine/cosine.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace huajin {

CosineSchedule::CosineSchedule(const CosineScheduleConfig& config) : config_(config) {
  check_warmup(config.warmup, std::numeric_limits<double>::infinity());
}

void CosineSchedule::setup(Session& session) { session.set_schedule(std::make_unique<CosineSchedule>(*this)); }

double CosineSchedule::factor(const Progress& progress) const {
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * after_warmup(config_.warmup, progress)));
  return warmup_factor(config_.warmup, progress) * (config_.final + (1 - config_.final) * wave);
}

}  // namespace huajin
