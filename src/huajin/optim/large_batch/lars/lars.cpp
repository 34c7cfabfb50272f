#include "huajin/optim/large_batch/lars/lars.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_clone.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include "huajin/optim/large_batch/trust_ratio.h"

namespace huajin {

void lars_update(Session& session, const ParameterLists& p, const LarsConfig& c) {
  const Tensor weight_norms = norms_of(session, p, p.w), gradient_norms = norms_of(session, p, p.g);
  const Tensor bound = gradient_norms + c.weight_decay * weight_norms;
  const Tensor ratios = at::where(gradient_norms > 0, ratio_or_one(c.trust * weight_norms, bound), at::ones_like(bound));
  const Tensors d = at::_foreach_clone(p.g);
  add_decay(p, d, c.weight_decay);
  scale_layers(p, d, ratios);
  const Tensors& u = p.slots[0];
  at::_foreach_mul_(u, c.momentum);
  at::_foreach_add_(u, d, p.rate);
  at::_foreach_sub_(p.w, u);
}

void Lars::setup(Session& session) {
  const auto update = [&session, c = config_](const ParameterLists& p) { lars_update(session, p, c); };
  const SlotNames slots{{"lars.velocity", SlotKind::kGradient}};
  session.set_optimizer(std::make_unique<ListOptimizer>(session, config_.learning_rate, slots, update, Reach::kAll));
}

}  // namespace huajin
