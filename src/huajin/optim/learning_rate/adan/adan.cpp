#include "huajin/optim/learning_rate/adan/adan.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sub.h>

#include <cmath>

namespace huajin {

void adan_update(const ParameterLists& p, const AdanConfig& c) {
  const Tensors &m = p.slots[0], &v = p.slots[1], &n = p.slots[2], &before = p.slots[3];
  const auto step = static_cast<double>(p.step);
  if (p.step == 1) at::_foreach_copy_(before, p.g);
  const Tensors change = at::_foreach_sub(p.g, before);
  update_mean(m, p.g, c.beta1);
  update_mean(v, change, c.beta2);
  at::_foreach_mul_(change, c.beta2);
  at::_foreach_add_(change, p.g);  // now the gradient, looking ahead
  update_mean_square(n, change, c.beta3);
  const Tensors below = root(n, 1 - std::pow(c.beta3, step), c.epsilon);
  at::_foreach_addcdiv_(p.w, m, below, -p.rate / (1 - std::pow(c.beta1, step)));
  at::_foreach_addcdiv_(p.w, v, below, -p.rate * c.beta2 / (1 - std::pow(c.beta2, step)));
  const double pull = 1 + p.rate * p.decay(c.weight_decay);
  if (pull > 1) at::_foreach_mul_(p.w, 1 / pull);
  at::_foreach_copy_(before, p.g);
}

void Adan::setup(Session& session) {
  const SlotNames slots{
      {"adan.m", SlotKind::kGradient}, {"adan.v", SlotKind::kGradient}, {"adan.n", SlotKind::kSecondMoment}, {"adan.before", SlotKind::kGradient}};
  set_list_optimizer(session, config_, slots, Reach::kElement, adan_update);
}

}  // namespace huajin
