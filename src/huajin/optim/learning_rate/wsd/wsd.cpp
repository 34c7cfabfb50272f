#include "huajin/optim/learning_rate/wsd/wsd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "huajin/core/errors.h"

namespace huajin {

WsdSchedule::WsdSchedule(const WsdScheduleConfig& config) : config_(config) {
  check_warmup(config.warmup, std::numeric_limits<double>::infinity());
  if (config.warmup.warmup + config.cooldown > 1 + 1e-12)
    throw UserError(fmt::format("schedule.warmup={} and schedule.cooldown={}: together they must be at most 1; lower one", config.warmup.warmup,
                                config.cooldown));
}

void WsdSchedule::setup(Session& session) { session.set_schedule(std::make_unique<WsdSchedule>(*this)); }

double WsdSchedule::factor(const Progress& progress) const {
  const double u = std::clamp((progress.fraction - (1 - config_.cooldown)) / config_.cooldown, 0.0, 1.0);
  const double fall = 1 - (config_.shape == "linear" ? u : std::sqrt(u));
  return warmup_factor(config_.warmup, progress) * (config_.final + (1 - config_.final) * fall);
}

}  // namespace huajin
