#include "huajin/optim/large_batch/clip/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/zeros_like.h>

#include "huajin/core/errors.h"

namespace huajin {

void clip_to_norm(const std::vector<Tensor>& gradients, const Tensor& norm, double most) {
  if (gradients.empty()) return;
  const Tensor factor = (most / (norm + 1e-6)).clamp_max(1);
  if (factor.is_cpu()) {
    const double f = factor.item().toDouble();
    if (f < 1) at::_foreach_mul_(gradients, f);
  } else {
    at::_foreach_mul_(gradients, factor.to(gradients[0].scalar_type()).squeeze());
  }
}

void clip_to_value(const std::vector<Tensor>& gradients, double most) {
  if (gradients.empty()) return;
  at::_foreach_clamp_min_(gradients, -most);
  at::_foreach_clamp_max_(gradients, most);
}

Clip::Clip(const ClipConfig& config) : config_(config) {
  if (config.norm == 0 && config.value == 0)
    throw UserError("clip: both clip.norm and clip.value are 0, so nothing would be clipped; give one, or drop clip");
}

void Clip::on_gradients(Step& step) {
  at::NoGradGuard off;
  std::vector<Tensor> gradients;
  for (Parameter* p : step.session.parameters())
    if (p->grad.defined()) gradients.push_back(p->grad);
  Tensor norm = step.norm;
  if (config_.value > 0) {
    clip_to_value(gradients, config_.value);
    if (config_.norm > 0) norm = step.session.norms([](const Parameter& p) { return p.grad.defined() ? p.grad : at::zeros_like(p.value); }).norm();
  }
  if (config_.norm > 0) clip_to_norm(gradients, norm, config_.norm);
}

}  // namespace huajin
