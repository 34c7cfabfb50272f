#include "huajin/optim/averaging/swa/swa.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

namespace huajin {

void mean_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double n) {
  if (!average.empty()) at::_foreach_lerp_(average, w, 1 / n);
}

void Swa::after_step(Step& step) {
  stand_in_.see(step);
  if (step.progress.fraction < config_.start || step.progress.step % config_.every != 0) return;
  at::NoGradGuard off;
  const auto [w, average] = weights_and_slot(step.session, "swa.average");
  mean_update(average, w, ++count_);
}

void Swa::evaluate(Session& session, FunctionRef<void()> next) {
  stand_in_.evaluate(session, count_ > 0, [&](const Parameter& p, Tensor& value) { value.copy_(session.slot("swa.average", p)); }, next);
}

void Swa::serialize(Archive& archive) {
  archive.number("count", count_);
  stand_in_.serialize(archive);
}

}  // namespace huajin
