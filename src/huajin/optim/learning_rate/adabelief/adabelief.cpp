#include "huajin/optim/learning_rate/adabelief/adabelief.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_sub.h>

#include <cmath>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

void adabelief_update(const ParameterLists& p, const AdabeliefConfig& c) {
  const auto step = static_cast<double>(p.step);
  const double size = p.rate / (1 - std::pow(c.beta1, step)), below = 1 - std::pow(c.beta2, step), lost = p.rate * p.decay(c.weight_decay);
  const auto one = [=, b1 = c.beta1, b2 = c.beta2, epsilon = c.epsilon, scale = 1 / std::sqrt(below)](auto& w, auto g, auto& m, auto& s) {
    using T = decltype(g);
    m = T(b1) * m + T(1 - b1) * g;
    s = T(b2) * s + T(1 - b2) * (g - m) * (g - m) + T(epsilon);
    w = T(1 - lost) * w - T(size) * m / (std::sqrt(s) * T(scale) + T(epsilon));
  };
  if (each_element<2>(p, one)) return;
  const Tensors &m = p.slots[0], &s = p.slots[1];
  update_mean(m, p.g, c.beta1);
  update_mean_square(s, at::_foreach_sub(p.g, m), c.beta2);
  at::_foreach_add_(s, c.epsilon);
  shrink(p.w, lost);
  at::_foreach_addcdiv_(p.w, m, root(s, below, c.epsilon), -size);
}

void Adabelief::setup(Session& session) {
  set_list_optimizer(session, config_, {{"adabelief.m", SlotKind::kGradient}, {"adabelief.s", SlotKind::kSecondMoment}}, adabelief_update);
}

}  // namespace huajin
