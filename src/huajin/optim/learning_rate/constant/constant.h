// Constant rate after warm-up: the baseline of every schedule, and the stable part of others.
#pragma once
#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct ConstantScheduleConfig {
  Warmup warmup;
  void fields(Fields& f) { warmup.fields(f); }
};

class ConstantSchedule : public ScheduleTechnique {  // warm-up alone
 public:
  explicit ConstantSchedule(const ConstantScheduleConfig& config);  // UserError: both warm-ups are given
};

}  // namespace huajin
