#include "huajin/optim/large_batch/lamb/lamb.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/ones_like.h>

#include <cmath>

#include "huajin/optim/large_batch/trust_ratio.h"

namespace huajin {

Tensors lamb_direction(const ParameterLists& p, const Tensors& g, const LambConfig& c) {
  const Tensors &m = p.slots[0], &v = p.slots[1];
  const auto step = static_cast<double>(p.step);
  update_mean(m, g, c.beta1);
  update_mean_square(v, g, c.beta2);
  const Tensors d = at::_foreach_div(m, root(v, c.bias_correction ? 1 - std::pow(c.beta2, step) : 1, c.epsilon));
  if (c.bias_correction) at::_foreach_mul_(d, 1 / (1 - std::pow(c.beta1, step)));
  add_decay(p, d, c.weight_decay);
  return d;
}

void lamb_update(Session& session, const ParameterLists& p, const LambConfig& c) {
  Tensors g = p.g;
  if (c.normalize_gradient) {
    const Tensor norm = norms_of(session, p, g).norm();
    g = at::_foreach_mul(g, ratio_or_one(at::ones_like(norm), norm));
  }
  const Tensors d = lamb_direction(p, g, c);
  Tensor ratios = ratio_or_one(norms_of(session, p, p.w), norms_of(session, p, d));
  if (c.trust_clip) ratios = ratios.clamp_max(1);
  scale_layers(p, d, ratios);
  at::_foreach_add_(p.w, d, -p.rate);
}

void Lamb::setup(Session& session) {
  const SlotNames slots{{"lamb.m", SlotKind::kGradient}, {"lamb.v", SlotKind::kSecondMoment}};
  session.set_optimizer(std::make_unique<ListOptimizer>(session, config_.learning_rate, slots, Reach::kAll,
                                                        [&session, c = config_](const ParameterLists& p) { lamb_update(session, p, c); }));
}

}  // namespace huajin
