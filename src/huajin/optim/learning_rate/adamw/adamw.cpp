#include "huajin/optim/learning_rate/adamw/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

namespace huajin {

void adamw_update(const std::vector<Tensor>& w, const std::vector<Tensor>& g, const std::vector<Tensor>& m, const std::vector<Tensor>& v,
                  const AdamwNumbers& n) {
  if (w.empty()) return;
  // The kernel only reads the count, so one tensor serves all. float32 holds it exactly up to 2^24 steps.
  const std::vector<Tensor> steps(w.size(), at::full({}, static_cast<double>(n.step), at::TensorOptions(at::kFloat).device(w[0].device())));
  at::_fused_adamw_(w, g, m, v, {}, steps, n.rate, n.beta1, n.beta2, n.weight_decay, n.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  // The fused kernel does not count as a change, and the engine renews bf16 and fp16 working copies only of what changed.
  for (const Tensor& tensor : w) tensor.unsafeGetTensorImpl()->bump_version();
}

Tensor gradient_or_zeros(const Parameter& p) { return p.grad.defined() ? p.grad.contiguous() : at::zeros_like(p.value); }

void AdamwOptimizer::begin(const Step& step, double rate_factor) {
  rate_ = config_.learning_rate * rate_factor;
  step_ = step.progress.step + 1;
}

void AdamwOptimizer::step(std::span<Parameter* const> parameters) {
  for (const bool decay : {true, false}) {
    std::vector<Tensor> w, g, m, v;
    for (Parameter* p : parameters) {
      if (p->decay != decay) continue;
      w.push_back(p->value);
      g.push_back(gradient_or_zeros(*p));
      m.push_back(session_.slot("adamw.m", *p));
      v.push_back(session_.slot("adamw.v", *p));
    }
    adamw_update(w, g, m, v, {rate_, config_.beta1, config_.beta2, config_.epsilon, decay ? config_.weight_decay : 0.0, step_});
  }
}

void Adamw::setup(Session& session) {
  session.declare_slot("adamw.m", SlotKind::kGradient);
  session.declare_slot("adamw.v", SlotKind::kSecondMoment);
  session.set_optimizer(std::make_unique<AdamwOptimizer>(session, config_));
}

}  // namespace huajin
