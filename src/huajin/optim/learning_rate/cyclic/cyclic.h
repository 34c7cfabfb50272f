// Cyclical rates: up and down between `least` and 1, `cycles` times in the budget. Smith, "Cyclical Learning Rates", WACV 2017 (arXiv 1506.01186),
// section 3: triangular, and triangular2, whose amplitude halves with each cycle.
#pragma once
#include <string>

#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct CyclicScheduleConfig {
  int64_t cycles = 4;
  double least = 0.1;
  std::string shape = "triangular";
  void fields(Fields& f) {
    f.integer("cycles", cycles, {.least = 1, .most = 100000}, "rises and falls in the budget");
    f.number("least", least, {.least = 0, .most = 1, .open = true}, "factor at the beginning and end of a cycle; 1: off");
    f.text("shape", shape, {"triangular", "triangular2"}, "triangular2: the amplitude halves with each cycle");
  }
};

// With x = cycles fraction, i = floor(x): least + (1 - least) (1 - |2 (x - i) - 1|) a, a = 1 or 2^-i
double cyclic_shape(double fraction, int64_t cycles, double least, bool halving);

class CyclicSchedule : public ScheduleTechnique {
 public:
  explicit CyclicSchedule(const CyclicScheduleConfig& config);
};

}  // namespace huajin
