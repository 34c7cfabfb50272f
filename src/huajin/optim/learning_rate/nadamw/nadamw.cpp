#include "huajin/optim/learning_rate/nadamw/nadamw.h"

#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_lerp.h>

#include <cmath>

namespace huajin {

void nadamw_update(const ParameterLists& p, const NadamwConfig& c) {
  const Tensors &m = p.slots[0], &v = p.slots[1];
  const auto step = static_cast<double>(p.step);
  update_mean(m, p.g, c.beta1);
  update_mean_square(v, p.g, c.beta2);
  const Tensors ahead = at::_foreach_lerp(m, p.g, 1 - c.beta1);
  shrink(p.w, p.rate * p.decay(c.weight_decay));
  at::_foreach_addcdiv_(p.w, ahead, root(v, 1 - std::pow(c.beta2, step), c.epsilon), -p.rate / (1 - std::pow(c.beta1, step)));
}

void Nadamw::setup(Session& session) {
  set_list_optimizer(session, config_, {{"nadamw.m", SlotKind::kGradient}, {"nadamw.v", SlotKind::kSecondMoment}}, Reach::kElement, nadamw_update);
}

}  // namespace huajin
