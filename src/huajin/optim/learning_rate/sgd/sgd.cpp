#include "huajin/optim/learning_rate/sgd/sgd.h"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>

namespace huajin {

void sgd_update(const std::vector<Tensor>& w, const std::vector<Tensor>& g, const std::vector<Tensor>& velocity, const SgdNumbers& n) {
  if (w.empty()) return;
  // A velocity of zeros before the first step gives the same numbers as the kernel's own first step.
  at::_fused_sgd_(w, g, n.momentum > 0 ? at::TensorList(velocity) : at::TensorList(), n.weight_decay, n.momentum, n.rate, /*dampening=*/0.0,
                  n.nesterov && n.momentum > 0, /*maximize=*/false, /*is_first_step=*/false);
  // The fused kernel does not count as a change, and the engine renews bf16 and fp16 working copies only of what changed.
  for (const Tensor& tensor : w) tensor.unsafeGetTensorImpl()->bump_version();
}

void SgdOptimizer::begin(const Step&, double rate_factor) { rate_ = config_.learning_rate * rate_factor; }

void SgdOptimizer::step(std::span<Parameter* const> parameters) {
  for (const bool decay : {true, false}) {
    std::vector<Tensor> w, g, velocity;
    for (Parameter* p : parameters) {
      if (p->decay != decay) continue;
      w.push_back(p->value);
      g.push_back(p->grad.defined() ? p->grad.contiguous() : at::zeros_like(p->value));
      if (config_.momentum > 0) velocity.push_back(session_.slot("sgd.velocity", *p));
    }
    sgd_update(w, g, velocity, {rate_, config_.momentum, decay ? config_.weight_decay : 0.0, config_.nesterov});
  }
}

void Sgd::setup(Session& session) {
  if (config_.momentum > 0) session.declare_slot("sgd.velocity", SlotKind::kGradient);
  session.set_optimizer(std::make_unique<SgdOptimizer>(session, config_));
}

}  // namespace huajin
