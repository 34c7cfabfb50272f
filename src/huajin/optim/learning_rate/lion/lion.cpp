#include "huajin/optim/learning_rate/lion/lion.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_sign.h>

namespace huajin {

void lion_update(const ParameterLists& p, const LionConfig& c) {
  const Tensors& m = p.slots[0];
  const Tensors direction = at::_foreach_lerp(m, p.g, 1 - c.beta1);
  at::_foreach_sign_(direction);
  shrink(p.w, p.rate * p.decay(c.weight_decay));
  at::_foreach_add_(p.w, direction, -p.rate);
  update_mean(m, p.g, c.beta2);
}

void Lion::setup(Session& session) { set_list_optimizer(session, config_, {{"lion.m", SlotKind::kGradient}}, Reach::kElement, lion_update); }

}  // namespace huajin
