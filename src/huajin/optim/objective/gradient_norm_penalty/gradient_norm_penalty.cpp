#include "huajin/optim/objective/gradient_norm_penalty/gradient_norm_penalty.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "huajin/optim/objective/perturbation.h"

namespace huajin {

bool GradientNormPenalty::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (config_.balance == 0) return next(pass);
  Session& session = step.session;
  Pass probe = pass;
  probe.probe = true;
  if (!next(probe)) return false;
  const Directions g = gradients_of(session);
  {
    const Climb there(session, g, session.norm(), config_.radius);
    if (!next(pass)) return false;
  }
  if (config_.balance == 1) return true;
  at::NoGradGuard off;
  const auto parameters = session.parameters();
  for (size_t i = 0; i < g.size(); ++i) {
    Tensor& grad = parameters[i]->grad;
    if (grad.defined()) grad.mul_(config_.balance);
    if (g[i].defined()) grad = grad.defined() ? grad.add_(g[i], 1 - config_.balance) : g[i] * (1 - config_.balance);
  }
  session.gradients_changed();
  return true;
}

}  // namespace huajin
