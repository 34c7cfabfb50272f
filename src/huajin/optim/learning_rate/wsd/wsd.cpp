#include "huajin/optim/learning_rate/wsd/wsd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/errors.h"

namespace huajin {

double wsd_shape(double fraction, double cooldown, bool sqrt, double final) {
  const double u = std::clamp((fraction - (1 - cooldown)) / cooldown, 0.0, 1.0);
  return final + (1 - final) * (1 - (sqrt ? std::sqrt(u) : u));
}

WsdSchedule::WsdSchedule(const WsdScheduleConfig& config)
    : ScheduleTechnique("wsd", config.warmup, [config](double fraction) {
        return wsd_shape(fraction, config.cooldown, config.shape == "one_minus_sqrt", config.final);
      }) {
  if (config.warmup.warmup + config.cooldown > 1 + 1e-12)
    throw UserError(fmt::format("schedule.warmup={} and schedule.cooldown={}: together they must be at most 1; lower one", config.warmup.warmup,
                                config.cooldown));
}

}  // namespace huajin
