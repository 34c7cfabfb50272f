// Half a cosine from the end of warm-up to the end of the budget. Loshchilov & Hutter, "SGDR", ICLR 2017, equation 5 with one cycle.
#pragma once
#include "huajin/optim/learning_rate/warmup.h"

namespace huajin {

struct CosineScheduleConfig {
  Warmup warmup;
  double final = 0;
  void fields(Fields& f) {
    warmup.fields(f);
    f.number("final", final, {.least = 0, .most = 1}, "factor when the budget ends");
  }
};

class CosineSchedule : public Technique, public Schedule {
 public:
  explicit CosineSchedule(const CosineScheduleConfig& config);  // UserError: both warm-ups are given
  std::string_view name() const override { return "cosine"; }
  void setup(Session& session) override;

  // Warm-up times final + (1 - final) (1 + cos(pi u)) / 2, u: part of what follows the warm-up, in [0, 1]
  double factor(const Progress& progress) const override;
  void check(double total_steps) const override { check_warmup(config_.warmup, total_steps); }

 private:
  CosineScheduleConfig config_;
};

}  // namespace huajin
