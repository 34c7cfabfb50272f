#include "huajin/optim/learning_rate/parameter_lists.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

namespace huajin {
Tensor gradient_or_zeros(const Parameter& p) { return p.grad.defined() ? p.grad.contiguous() : at::zeros_like(p.value); }

ListOptimizer::ListOptimizer(Session& session, double learning_rate, const SlotNames& slots, Update update, Reach reach)
    : session_(session), base_rate_(learning_rate), update_(std::move(update)), reach_(reach) {
  for (const auto& [name, kind] : slots) {
    session.declare_slot(name, kind);
    slots_.push_back(name);
  }
}

void ListOptimizer::begin(const Step& step, double rate_factor) {
  rate_ = base_rate_ * rate_factor;
  step_ = step.progress.step + 1;
}

void ListOptimizer::step(std::span<Parameter* const> parameters) {
  for (const bool decays : {true, false}) {
    ParameterLists lists{rate_, step_, decays, {}, {}, {}, std::vector<Tensors>(slots_.size())};
    for (Parameter* p : parameters) {
      if (reach_ != Reach::kAll && p->decay != decays) continue;
      lists.parameters.push_back(p);
      lists.w.push_back(p->value);
      lists.g.push_back(gradient_or_zeros(*p));
      for (size_t s = 0; s < slots_.size(); ++s) lists.slots[s].push_back(session_.slot(slots_[s], *p));
    }
    if (lists.w.empty() && reach_ != Reach::kAll) continue;
    update_(lists);
    // Fused kernels and loops do not count as a change, and the engine renews bf16 and fp16 working copies only of what changed.
    for (const Tensor& tensor : lists.w) tensor.unsafeGetTensorImpl()->bump_version();
    if (reach_ == Reach::kAll) return;
  }
}

void update_mean(const Tensors& mean, const Tensors& x, double beta) { at::_foreach_lerp_(mean, x, 1 - beta); }

void update_mean_square(const Tensors& mean, const Tensors& x, double beta) {
  at::_foreach_mul_(mean, beta);
  at::_foreach_addcmul_(mean, x, x, 1 - beta);
}

Tensors root(const Tensors& square, double divisor, double epsilon) {
  Tensors made = at::_foreach_sqrt(square);
  if (divisor != 1) at::_foreach_mul_(made, 1 / std::sqrt(divisor));
  at::_foreach_add_(made, epsilon);
  return made;
}

Tensors with_penalty(const Tensors& g, const Tensors& w, double weight_decay) { return weight_decay > 0 ? at::_foreach_add(g, w, weight_decay) : g; }

void shrink(const Tensors& w, double share) {
  if (share > 0) at::_foreach_mul_(w, 1 - share);
}

}  // namespace huajin
