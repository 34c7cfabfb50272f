#include "huajin/optim/large_batch/lamb/lamb.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>

#include <cmath>

#include "huajin/optim/large_batch/trust_ratio.h"
#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

Tensors lamb_direction(const ParameterLists& p, const Tensors& g, const LambConfig& c) {
  const auto step = static_cast<double>(p.step);
  const double mean_below = c.bias_correction ? 1 - std::pow(c.beta1, step) : 1, below = c.bias_correction ? 1 - std::pow(c.beta2, step) : 1;
  const auto one = [=, b1 = c.beta1, b2 = c.beta2, epsilon = c.epsilon, scale = 1 / std::sqrt(below)](auto& d, auto x, auto& m, auto& v) {
    using T = decltype(x);
    m = T(b1) * m + T(1 - b1) * x;
    v = T(b2) * v + T(1 - b2) * x * x;
    d = m / (T(mean_below) * (std::sqrt(v) * T(scale) + T(epsilon)));
  };
  ParameterLists into{p.rate, p.step, p.decays, p.parameters, {}, g, p.slots};  // d takes w's place
  for (const Tensor& w : p.w) into.w.push_back(at::empty_like(w));
  if (!each_element<2>(into, one)) {
    const Tensors &m = p.slots[0], &v = p.slots[1];
    update_mean(m, g, c.beta1);
    update_mean_square(v, g, c.beta2);
    into.w = at::_foreach_div(m, root(v, below, c.epsilon));
    at::_foreach_mul_(into.w, 1 / mean_below);
  }
  add_decay(p, into.w, c.weight_decay);
  return into.w;
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
  const auto update = [&session, c = config_](const ParameterLists& p) { lamb_update(session, p, c); };
  const SlotNames slots{{"lamb.m", SlotKind::kGradient}, {"lamb.v", SlotKind::kSecondMoment}};
  session.set_optimizer(std::make_unique<ListOptimizer>(session, config_.learning_rate, slots, update, Reach::kAll));
}

}  // namespace huajin
