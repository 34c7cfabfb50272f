#include "huajin/optim/learning_rate/lion/lion.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sign.h>
#include <ATen/ops/zeros_like.h>

namespace huajin {

void lion_update(const std::vector<Tensor>& w, const std::vector<Tensor>& g, const std::vector<Tensor>& m, const LionNumbers& n) {
  if (w.empty()) return;
  const std::vector<Tensor> direction = at::_foreach_lerp(m, g, 1 - n.beta1);
  at::_foreach_sign_(direction);
  if (n.weight_decay > 0) at::_foreach_mul_(w, 1 - n.rate * n.weight_decay);
  at::_foreach_add_(w, direction, -n.rate);
  at::_foreach_lerp_(m, g, 1 - n.beta2);
}

void LionOptimizer::begin(const Step&, double rate_factor) { rate_ = config_.learning_rate * rate_factor; }

void LionOptimizer::step(std::span<Parameter* const> parameters) {
  for (const bool decay : {true, false}) {
    std::vector<Tensor> w, g, m;
    for (Parameter* p : parameters) {
      if (p->decay != decay) continue;
      w.push_back(p->value);
      g.push_back(p->grad.defined() ? p->grad.contiguous() : at::zeros_like(p->value));
      m.push_back(session_.slot("lion.m", *p));
    }
    lion_update(w, g, m, {rate_, config_.beta1, config_.beta2, decay ? config_.weight_decay : 0.0});
  }
}

void Lion::setup(Session& session) {
  session.declare_slot("lion.m", SlotKind::kGradient);
  session.set_optimizer(std::make_unique<LionOptimizer>(session, config_));
}

}  // namespace huajin
