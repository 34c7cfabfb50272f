// One cycle: the rate rises from `start` to 1 and falls to `final`, far below where it began. Smith & Topin, "Super-Convergence", arXiv 1708.07120,
// section 3; Smith, arXiv 1803.09820, section 4. The momentum, which their recipe moves the other way, stays.
#pragma once
#include <string>

#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct OneCycleScheduleConfig {
  double start = 0.04, rise = 0.3, final = 0;
  std::string shape = "cosine";
  void fields(Fields& f) {
    f.number("start", start, {.least = 0, .most = 1, .open = true}, "factor at the first update");
    f.number("rise", rise, {.least = 0, .most = 1, .open_most = true}, "fraction of the budget after which the rate is highest");
    f.number("final", final, {.least = 0, .most = 1}, "factor when the budget ends");
    f.text("shape", shape, {"cosine", "linear"}, "of both parts");
  }
};

// start -> 1 while fraction < rise, then 1 -> final; from a to b along (1 - cos(pi u)) / 2 or u.
double one_cycle_shape(double fraction, double start, double rise, double final, bool linear);

class OneCycleSchedule : public ScheduleTechnique {
 public:
  explicit OneCycleSchedule(const OneCycleScheduleConfig& config);
};

}  // namespace huajin
