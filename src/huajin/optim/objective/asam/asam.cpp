#include "huajin/optim/objective/asam/asam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "huajin/optim/objective/perturbation.h"

namespace huajin {

Tensor asam_scaled(const Tensor& w, const Tensor& g, double eta, bool bias) { return bias ? g : (w.abs() + eta) * g; }

bool Asam::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (config_.rho == 0 || step.progress.step % config_.every != 0) return next(pass);
  Pass probe = pass;
  probe.probe = true;
  if (!next(probe)) return false;
  const auto parameters = step.session.parameters();
  Directions d = gradients_of(step.session);
  const auto scale = [&] {
    at::NoGradGuard off;
    for (size_t i = 0; i < d.size(); ++i)
      if (d[i].defined()) d[i] = asam_scaled(parameters[i]->value, d[i], config_.eta, parameters[i]->name.ends_with("bias"));
  };
  scale();
  const Tensor norm = norm_of(step.session, d);
  scale();
  const Climb there(step.session, std::move(d), norm, config_.rho);
  return next(pass);
}

}  // namespace huajin
