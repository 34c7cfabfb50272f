#include "huajin/optim/learning_rate/plateau/plateau.h"

#include <algorithm>

namespace huajin {

PlateauState plateau_after(PlateauState state, double loss, const PlateauScheduleConfig& config) {
  if (loss < state.best * (1 - config.threshold)) {
    state.best = loss;
    state.bad = 0;
  } else {
    state.bad += 1;
  }
  if (state.rest > 0) {
    state.rest -= 1;
    state.bad = 0;
  }
  if (state.bad > static_cast<double>(config.patience)) {
    state.scale = std::max(state.scale * config.factor, std::min(state.scale, config.least));
    state.rest = static_cast<double>(config.cooldown);
    state.bad = 0;
  }
  return state;
}

PlateauSchedule::PlateauSchedule(const PlateauScheduleConfig& config) : PlateauSchedule(config, std::make_shared<PlateauState>()) {}

PlateauSchedule::PlateauSchedule(const PlateauScheduleConfig& config, std::shared_ptr<PlateauState> state)
    : ScheduleTechnique("plateau", config.warmup, [state](double) { return state->scale; }), config_(config), state_(std::move(state)) {}

void PlateauSchedule::serialize(Archive& archive) {
  archive.number("best", state_->best);
  archive.number("bad", state_->bad);
  archive.number("rest", state_->rest);
  archive.number("scale", state_->scale);
}

}  // namespace huajin
