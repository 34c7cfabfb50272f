#include "huajin/optim/learning_rate/rmsprop/rmsprop.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>

namespace huajin {

void rmsprop_update(const ParameterLists& p, const RmspropConfig& c) {
  const Tensors d = with_penalty(p.g, p.w, p.decay(c.weight_decay));
  const Tensors& v = p.slots[0];
  update_mean_square(v, d, c.beta);
  Tensors below;
  if (c.centered) {
    const Tensors& mean = p.slots[1];
    update_mean(mean, d, c.beta);
    const Tensors variance = at::_foreach_addcmul(v, mean, mean, -1);
    at::_foreach_clamp_min_(variance, 0);  // only rounding makes it negative
    below = root(variance, 1, c.epsilon);
  } else {
    below = root(v, 1, c.epsilon);
  }
  if (c.momentum == 0) return at::_foreach_addcdiv_(p.w, d, below, -p.rate);
  const Tensors& u = p.slots.back();
  at::_foreach_mul_(u, c.momentum);
  at::_foreach_addcdiv_(u, d, below, 1);
  at::_foreach_add_(p.w, u, -p.rate);
}

void Rmsprop::setup(Session& session) {
  SlotNames slots{{"rmsprop.v", SlotKind::kSecondMoment}};
  if (config_.centered) slots.push_back({"rmsprop.mean", SlotKind::kGradient});
  if (config_.momentum > 0) slots.push_back({"rmsprop.velocity", SlotKind::kGradient});
  set_list_optimizer(session, config_, slots, Reach::kElement, rmsprop_update);
}

}  // namespace huajin
