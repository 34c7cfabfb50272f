#include "huajin/optim/learning_rate/adagrad/adagrad.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

void adagrad_update(const ParameterLists& p, const AdagradConfig& c) {
  const auto one = [c, rate = p.rate, penalty = p.decay(c.weight_decay)](auto& w, auto g, auto& sum) {
    using T = decltype(g);
    const T d = g + T(penalty) * w;
    sum += d * d;
    w -= T(rate) * d / (std::sqrt(sum + T(c.initial_sum)) + T(c.epsilon));
  };
  if (each_element<1>(p, one)) return;
  const Tensors d = with_penalty(p.g, p.w, p.decay(c.weight_decay));
  const Tensors& sum = p.slots[0];
  at::_foreach_addcmul_(sum, d, d, 1);
  const Tensors below = root(c.initial_sum > 0 ? at::_foreach_add(sum, c.initial_sum) : sum, 1, c.epsilon);
  at::_foreach_addcdiv_(p.w, d, below, -p.rate);
}

void Adagrad::setup(Session& session) { set_list_optimizer(session, config_, {{"adagrad.sum", SlotKind::kSecondMoment}}, adagrad_update); }

}  // namespace huajin
