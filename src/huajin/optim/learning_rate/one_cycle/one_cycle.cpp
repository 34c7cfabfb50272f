#include "huajin/optim/learning_rate/one_cycle/one_cycle.h"

#include <cmath>
#include <numbers>

namespace huajin {

double one_cycle_shape(double fraction, double start, double rise, double final, bool linear) {
  const bool rising = fraction < rise;
  const double u = rising ? fraction / rise : (fraction - rise) / (1 - rise);
  const double passed = linear ? u : 0.5 * (1 - std::cos(std::numbers::pi * u));
  return rising ? start + (1 - start) * passed : final + (1 - final) * (1 - passed);
}

OneCycleSchedule::OneCycleSchedule(const OneCycleScheduleConfig& config)
    : ScheduleTechnique("one_cycle", Warmup{}, [config](double fraction) {
        return one_cycle_shape(fraction, config.start, config.rise, config.final, config.shape == "linear");
      }) {}

}  // namespace huajin
