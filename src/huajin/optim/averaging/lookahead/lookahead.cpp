#include "huajin/optim/averaging/lookahead/lookahead.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>

namespace huajin {

void lookahead_pull(const std::vector<Tensor>& slow, const std::vector<Tensor>& fast, double share) {
  if (slow.empty()) return;
  at::_foreach_lerp_(slow, fast, share);
  at::_foreach_copy_(fast, slow);
}

void Lookahead::update(Step& step, FunctionRef<void()> next) {
  next();
  stand_in_.see(step);
  // Off does nothing: a full lerp may still turn -0 into 0.
  if (config_.share == 1 || (step.progress.step + 1) % config_.every != 0) return;
  at::NoGradGuard off;
  const auto [fast, slow] = weights_and_slot(step.session, "lookahead.slow");
  lookahead_pull(slow, fast, config_.share);
}

void Lookahead::evaluate(Session& session, FunctionRef<void()> next) {
  stand_in_.evaluate(session, config_.share < 1, [&](const Parameter& p, Tensor& value) { value.copy_(session.slot("lookahead.slow", p)); }, next);
}

}  // namespace huajin
