// Reduce on plateau: the rate is multiplied by `factor` when more than `patience` evaluations in a row have not improved on the best validation loss by
// the share `threshold`. The one schedule that depends on what was seen; the state is four numbers, saved with each checkpoint.
#pragma once
#include <limits>
#include <memory>

#include "huajin/optim/learning_rate/shaped_schedule.h"

namespace huajin {

struct PlateauScheduleConfig {
  Warmup warmup;
  double factor = 0.3;
  int64_t patience = 2, cooldown = 0;
  double threshold = 1e-3, least = 0.001;
  void fields(Fields& f) {
    warmup.fields(f);
    f.number("factor", factor, {.least = 0, .most = 1, .open = true}, "of the rate at each reduction; 1: off");
    f.integer("patience", patience, {.least = 0}, "evaluations in a row without improvement that are let pass");
    f.integer("cooldown", cooldown, {.least = 0}, "evaluations after a reduction that do not count");
    f.number("threshold", threshold, {.least = 0, .most = 1, .open_most = true}, "share of the best loss by which one must be lower to improve on it");
    f.number("least", least, {.least = 0, .most = 1}, "factor below which it is not reduced");
  }
};

struct PlateauState {
  double best = std::numeric_limits<double>::infinity();  // loss
  double bad = 0;   // evaluations in a row without improvement
  double rest = 0;  // evaluations of the cool-down that are left
  double scale = 1;
};
// After an evaluation. A loss that is not finite is no improvement.
PlateauState plateau_after(PlateauState state, double loss, const PlateauScheduleConfig& config);

class PlateauSchedule : public ScheduleTechnique {
 public:
  explicit PlateauSchedule(const PlateauScheduleConfig& config);  // UserError: both warm-ups are given
  Needs needs() const override { return kEvaluations; }
  void after_evaluation(const Progress&, double loss) override { *state_ = plateau_after(*state_, loss, config_); }
  void serialize(Archive& archive) override;

 private:
  PlateauSchedule(const PlateauScheduleConfig& config, std::shared_ptr<PlateauState> state);
  PlateauScheduleConfig config_;
  std::shared_ptr<PlateauState> state_;  // the schedule that was handed over reads it
};

}  // namespace huajin
