#include "huajin/optim/learning_rate/lion/lion.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_sign.h>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

void lion_update(const ParameterLists& p, const LionConfig& c) {
  const auto one = [b1 = c.beta1, b2 = c.beta2, rate = p.rate, keep = 1 - p.rate * p.decay(c.weight_decay)](auto& w, auto g, auto& m) {
    using T = decltype(g);
    const T d = T(b1) * m + T(1 - b1) * g;
    w = T(keep) * w - T(rate) * ((d > 0 ? T(1) : T(0)) - (d < 0 ? T(1) : T(0)));
    m = T(b2) * m + T(1 - b2) * g;
  };
  if (each_element<1>(p, one)) return;
  const Tensors& m = p.slots[0];
  const Tensors direction = at::_foreach_lerp(m, p.g, 1 - c.beta1);
  at::_foreach_sign_(direction);
  shrink(p.w, p.rate * p.decay(c.weight_decay));
  at::_foreach_add_(p.w, direction, -p.rate);
  update_mean(m, p.g, c.beta2);
}

void Lion::setup(Session& session) { set_list_optimizer(session, config_, {{"lion.m", SlotKind::kGradient}}, lion_update); }

}  // namespace huajin
