#include "huajin/optim/objective/gsam/gsam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "huajin/optim/objective/perturbation.h"

namespace huajin {

bool Gsam::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  const double rho = config_.rho + (config_.final_rho - config_.rho) * step.progress.fraction;
  if (rho <= 0) return next(pass);
  Session& session = step.session;
  Pass probe = pass;
  probe.probe = true;
  if (!next(probe)) return false;
  const Directions g = gradients_of(session);
  const Tensor norm = session.norm();
  {
    const Climb there(session, g, norm, rho);
    if (!next(pass)) return false;
  }
  if (config_.alpha == 0) return true;
  at::NoGradGuard off;
  const Directions perturbed = gradients_of(session);
  const Tensor perturbed_norm = session.norm();
  const Tensor share = norm * cosine(session, g, norm, perturbed, perturbed_norm) / (perturbed_norm + 1e-12);  // <g, g_p> / |g_p|^2
  const Tensor factor = 1 + config_.alpha * share;
  const auto parameters = session.parameters();
  for (size_t i = 0; i < g.size(); ++i) {
    Tensor& grad = parameters[i]->grad;
    if (grad.defined()) grad.mul_(factor.to(grad.scalar_type()));
    if (g[i].defined()) grad = grad.defined() ? grad.sub_(g[i], config_.alpha) : g[i] * -config_.alpha;
  }
  session.gradients_changed();
  return true;
}

}  // namespace huajin
