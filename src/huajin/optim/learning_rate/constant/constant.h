// Constant rate after warm-up: the baseline of every schedule, and the stable part of others.
#pragma once
#include "huajin/optim/learning_rate/warmup.h"

namespace huajin {

struct ConstantScheduleConfig {
  Warmup warmup;
  void fields(Fields& f) { warmup.fields(f); }
};

class ConstantSchedule : public Technique, public Schedule {
 public:
  explicit ConstantSchedule(const ConstantScheduleConfig& config);  // UserError: both warm-ups are given
  std::string_view name() const override { return "constant"; }
  void setup(Session& session) override;

  // Warm-up alone.
  double factor(const Progress& progress) const override;
  void check(double total_steps) const override { check_warmup(config_.warmup, total_steps); }

 private:
  ConstantScheduleConfig config_;
};

}  // namespace huajin
