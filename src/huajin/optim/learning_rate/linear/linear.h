// Linear decay from the end of warm-up to the end of the budget. Li et al., "Budgeted Training", ICLR 2020, section 3; to zero: Bergsma et al.,
// arXiv 2502.15938.
#pragma once
#include "huajin/optim/learning_rate/warmup.h"

namespace huajin {

struct LinearScheduleConfig {
  Warmup warmup;
  double final = 0;
  void fields(Fields& f) {
    warmup.fields(f);
    f.number("final", final, {.least = 0, .most = 1}, "factor when the budget ends");
  }
};

class LinearSchedule : public Technique, public Schedule {
 public:
  explicit LinearSchedule(const LinearScheduleConfig& config);  // UserError: both warm-ups are given
  std::string_view name() const override { return "linear"; }
  void setup(Session& session) override;

  // Warm-up times final + (1 - final) (1 - u), u: part of what follows the warm-up, in [0, 1]
  double factor(const Progress& progress) const override;
  void check(double total_steps) const override { check_warmup(config_.warmup, total_steps); }

 private:
  LinearScheduleConfig config_;
};

}  // namespace huajin
