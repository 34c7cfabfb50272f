#include "huajin/optim/learning_rate/adagrad/adagrad.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>

namespace huajin {

void adagrad_update(const ParameterLists& p, const AdagradConfig& c) {
  const Tensors d = with_penalty(p.g, p.w, p.decay(c.weight_decay));
  const Tensors& sum = p.slots[0];
  at::_foreach_addcmul_(sum, d, d, 1);
  const Tensors below = root(c.initial_sum > 0 ? at::_foreach_add(sum, c.initial_sum) : sum, 1, c.epsilon);
  at::_foreach_addcdiv_(p.w, d, below, -p.rate);
}

void Adagrad::setup(Session& session) {
  set_list_optimizer(session, config_, {{"adagrad.sum", SlotKind::kSecondMoment}}, Reach::kElement, adagrad_update);
}

}  // namespace huajin
