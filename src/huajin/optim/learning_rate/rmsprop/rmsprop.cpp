#include "huajin/optim/learning_rate/rmsprop/rmsprop.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

namespace {

bool rmsprop_loop(const ParameterLists& p, const RmspropConfig& c) {
  const auto divided = [=](auto d, auto& v) {  // and v takes d in
    using T = decltype(d);
    v = T(c.beta) * v + T(1 - c.beta) * d * d;
    return d / (std::sqrt(v) + T(c.epsilon));
  };
  const auto divided_centered = [=](auto d, auto& v, auto& mean) {
    using T = decltype(d);
    v = T(c.beta) * v + T(1 - c.beta) * d * d;
    mean = T(c.beta) * mean + T(1 - c.beta) * d;
    const T variance = v - mean * mean;
    return d / (std::sqrt(variance > 0 ? variance : T(0)) + T(c.epsilon));  // only rounding makes it negative
  };
  const auto move = [=, rate = p.rate](auto& w, auto step, auto& u) {
    u = decltype(step)(c.momentum) * u + step;
    w -= decltype(step)(rate) * u;
  };
  const auto penalized = [=, penalty = p.decay(c.weight_decay)](auto g, auto w) { return g + decltype(g)(penalty) * w; };
  if (c.centered && c.momentum > 0)
    return each_element<3>(p, [=](auto& w, auto g, auto& v, auto& mean, auto& u) { move(w, divided_centered(penalized(g, w), v, mean), u); });
  if (c.momentum > 0) return each_element<2>(p, [=](auto& w, auto g, auto& v, auto& u) { move(w, divided(penalized(g, w), v), u); });
  const auto step = [rate = p.rate](auto& w, auto d) { w -= decltype(d)(rate) * d; };
  if (c.centered) return each_element<2>(p, [=](auto& w, auto g, auto& v, auto& mean) { step(w, divided_centered(penalized(g, w), v, mean)); });
  return each_element<1>(p, [=](auto& w, auto g, auto& v) { step(w, divided(penalized(g, w), v)); });
}

}  // namespace

void rmsprop_update(const ParameterLists& p, const RmspropConfig& c) {
  if (rmsprop_loop(p, c)) return;
  const Tensors d = with_penalty(p.g, p.w, p.decay(c.weight_decay));
  const Tensors& v = p.slots[0];
  update_mean_square(v, d, c.beta);
  Tensors below;
  if (c.centered) {
    const Tensors& mean = p.slots[1];
    update_mean(mean, d, c.beta);
    const Tensors variance = at::_foreach_addcmul(v, mean, mean, -1);
    at::_foreach_clamp_min_(variance, 0);  // only rounding makes it negative
    below = root(variance, 1, c.epsilon);
  } else {
    below = root(v, 1, c.epsilon);
  }
  if (c.momentum == 0) return at::_foreach_addcdiv_(p.w, d, below, -p.rate);
  const Tensors& u = p.slots.back();
  at::_foreach_mul_(u, c.momentum);
  at::_foreach_addcdiv_(u, d, below, 1);
  at::_foreach_add_(p.w, u, -p.rate);
}

void Rmsprop::setup(Session& session) {
  SlotNames slots{{"rmsprop.v", SlotKind::kSecondMoment}};
  if (config_.centered) slots.push_back({"rmsprop.mean", SlotKind::kGradient});
  if (config_.momentum > 0) slots.push_back({"rmsprop.velocity", SlotKind::kGradient});
  set_list_optimizer(session, config_, slots, rmsprop_update);
}

}  // namespace huajin
