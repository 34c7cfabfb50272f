#include "huajin/optim/learning_rate/adan/adan.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sub.h>

#include <cmath>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

void adan_update(const ParameterLists& p, const AdanConfig& c) {
  const auto step = static_cast<double>(p.step);
  const double mean_size = p.rate / (1 - std::pow(c.beta1, step)), change_size = p.rate * c.beta2 / (1 - std::pow(c.beta2, step));
  const double below = 1 - std::pow(c.beta3, step), pull = 1 / (1 + p.rate * p.decay(c.weight_decay));
  const auto one = [=, first = p.step == 1, scale = 1 / std::sqrt(below)](auto& w, auto g, auto& m, auto& v, auto& n, auto& before) {
    using T = decltype(g);
    const T change = first ? T(0) : g - before, ahead = g + T(c.beta2) * change;
    m = T(c.beta1) * m + T(1 - c.beta1) * g;
    v = T(c.beta2) * v + T(1 - c.beta2) * change;
    n = T(c.beta3) * n + T(1 - c.beta3) * ahead * ahead;
    w = T(pull) * (w - (T(mean_size) * m + T(change_size) * v) / (std::sqrt(n) * T(scale) + T(c.epsilon)));
    before = g;
  };
  if (each_element<4>(p, one)) return;
  const Tensors &m = p.slots[0], &v = p.slots[1], &n = p.slots[2], &before = p.slots[3];
  if (p.step == 1) at::_foreach_copy_(before, p.g);
  const Tensors change = at::_foreach_sub(p.g, before);
  update_mean(m, p.g, c.beta1);
  update_mean(v, change, c.beta2);
  at::_foreach_mul_(change, c.beta2);
  at::_foreach_add_(change, p.g);  // now the gradient, looking ahead
  update_mean_square(n, change, c.beta3);
  const Tensors divisor = root(n, below, c.epsilon);
  at::_foreach_addcdiv_(p.w, m, divisor, -mean_size);
  at::_foreach_addcdiv_(p.w, v, divisor, -change_size);
  at::_foreach_mul_(p.w, pull);
  at::_foreach_copy_(before, p.g);
}

void Adan::setup(Session& session) {
  const SlotNames slots{
      {"adan.m", SlotKind::kGradient}, {"adan.v", SlotKind::kGradient}, {"adan.n", SlotKind::kSecondMoment}, {"adan.before", SlotKind::kGradient}};
  set_list_optimizer(session, config_, slots, adan_update);
}

}  // namespace huajin
