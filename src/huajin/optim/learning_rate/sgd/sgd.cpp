#include "huajin/optim/learning_rate/sgd/sgd.h"

#include <ATen/ops/_fused_sgd.h>

namespace huajin {

void sgd_update(const ParameterLists& p, const SgdConfig& c) {
  // A velocity of zeros before the first step gives the same numbers as the kernel's own first step.
  at::_fused_sgd_(p.w, p.g, c.momentum > 0 ? at::TensorList(p.slots[0]) : at::TensorList(), p.decay(c.weight_decay), c.momentum, p.rate,
                  /*dampening=*/0.0, c.nesterov && c.momentum > 0, /*maximize=*/false, /*is_first_step=*/false);
}

void Sgd::setup(Session& session) {
  const SlotNames velocity{{"sgd.velocity", SlotKind::kGradient}};
  set_list_optimizer(session, config_, config_.momentum > 0 ? velocity : SlotNames{}, sgd_update);
}

}  // namespace huajin
