#include "huajin/optim/learning_rate/nadamw/nadamw.h"

#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_lerp.h>

#include <cmath>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

void nadamw_update(const ParameterLists& p, const NadamwConfig& c) {
  const auto step = static_cast<double>(p.step);
  const double size = p.rate / (1 - std::pow(c.beta1, step)), below = 1 - std::pow(c.beta2, step), lost = p.rate * p.decay(c.weight_decay);
  const auto one = [=, b1 = c.beta1, b2 = c.beta2, epsilon = c.epsilon, scale = 1 / std::sqrt(below)](auto& w, auto g, auto& m, auto& v) {
    using T = decltype(g);
    m = T(b1) * m + T(1 - b1) * g;
    v = T(b2) * v + T(1 - b2) * g * g;
    const T ahead = T(b1) * m + T(1 - b1) * g;
    w = T(1 - lost) * w - T(size) * ahead / (std::sqrt(v) * T(scale) + T(epsilon));
  };
  if (each_element<2>(p, one)) return;
  const Tensors &m = p.slots[0], &v = p.slots[1];
  update_mean(m, p.g, c.beta1);
  update_mean_square(v, p.g, c.beta2);
  const Tensors ahead = at::_foreach_lerp(m, p.g, 1 - c.beta1);
  shrink(p.w, lost);
  at::_foreach_addcdiv_(p.w, ahead, root(v, below, c.epsilon), -size);
}

void Nadamw::setup(Session& session) {
  set_list_optimizer(session, config_, {{"nadamw.m", SlotKind::kGradient}, {"nadamw.v", SlotKind::kSecondMoment}}, nadamw_update);
}

}  // namespace huajin
