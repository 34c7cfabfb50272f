#include "huajin/optim/learning_rate/adam/adam.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/full.h>

namespace huajin {

void adam_update(const ParameterLists& p, const AdamConfig& c) {
  // The kernel only reads the count, so one tensor serves all. float32 holds it exactly up to 2^24 steps.
  const Tensors steps(p.w.size(), at::full({}, static_cast<double>(p.step), at::TensorOptions(at::kFloat).device(p.w[0].device())));
  at::_fused_adam_(p.w, p.g, p.slots[0], p.slots[1], c.amsgrad ? at::TensorList(p.slots[2]) : at::TensorList(), steps, p.rate, c.beta1, c.beta2,
                   p.decay(c.weight_decay), c.epsilon, c.amsgrad, /*maximize=*/false);
}

void Adam::setup(Session& session) {
  SlotNames slots{{"adam.m", SlotKind::kGradient}, {"adam.v", SlotKind::kSecondMoment}};
  if (config_.amsgrad) slots.push_back({"adam.largest_v", SlotKind::kSecondMoment});
  set_list_optimizer(session, config_, slots, adam_update);
}

}  // namespace huajin
