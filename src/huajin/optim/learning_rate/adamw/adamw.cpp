#include "huajin/optim/learning_rate/adamw/adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>

namespace huajin {

void adamw_update(const ParameterLists& p, const AdamwConfig& c) {
  // The kernel only reads the count, so one tensor serves all. float32 holds it exactly up to 2^24 steps.
  const Tensors steps(p.w.size(), at::full({}, static_cast<double>(p.step), at::TensorOptions(at::kFloat).device(p.w[0].device())));
  at::_fused_adamw_(p.w, p.g, p.slots[0], p.slots[1], {}, steps, p.rate, c.beta1, c.beta2, p.decay(c.weight_decay), c.epsilon, /*amsgrad=*/false,
                    /*maximize=*/false);
}

AdamwOptimizer::AdamwOptimizer(Session& session, const AdamwConfig& c)
    : ListOptimizer(session, c.learning_rate, {{"adamw.m", SlotKind::kGradient}, {"adamw.v", SlotKind::kSecondMoment}},
                    [c](const ParameterLists& p) { adamw_update(p, c); }) {}

void Adamw::setup(Session& session) { session.set_optimizer(std::make_unique<AdamwOptimizer>(session, config_)); }

}  // namespace huajin
