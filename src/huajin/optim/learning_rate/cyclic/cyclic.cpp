#include "huajin/optim/learning_rate/cyclic/cyclic.h"

#include <cmath>

namespace huajin {

double cyclic_shape(double fraction, int64_t cycles, double least, bool halving) {
  const double x = static_cast<double>(cycles) * fraction, i = std::floor(x);
  return least + (1 - least) * (1 - std::abs(2 * (x - i) - 1)) * (halving ? std::exp2(-i) : 1.0);
}

CyclicSchedule::CyclicSchedule(const CyclicScheduleConfig& config)
    : ScheduleTechnique("cyclic", Warmup{}, [config](double fraction) {
        return cyclic_shape(fraction, config.cycles, config.least, config.shape == "triangular2");
      }) {}

}  // namespace huajin
