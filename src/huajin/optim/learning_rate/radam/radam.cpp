#include "huajin/optim/learning_rate/radam/radam.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>

#include <cmath>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

double rectification(double beta2, int64_t step) {
  const auto t = static_cast<double>(step);
  const double most = 2 / (1 - beta2) - 1, left = std::pow(beta2, t);
  const double rho = most - 2 * t * left / (1 - left);
  if (rho <= 4) return 0;
  return std::sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho));
}

void radam_update(const ParameterLists& p, const RadamConfig& c) {
  const auto step = static_cast<double>(p.step);
  const double r = rectification(c.beta2, p.step), below = 1 - std::pow(c.beta2, step), lost = p.rate * p.decay(c.weight_decay);
  const double size = p.rate / (1 - std::pow(c.beta1, step)) * (r > 0 ? r : 1);
  const auto one = [=, b1 = c.beta1, b2 = c.beta2, epsilon = c.epsilon, scale = 1 / std::sqrt(below)](auto& w, auto g, auto& m, auto& v) {
    using T = decltype(g);
    m = T(b1) * m + T(1 - b1) * g;
    v = T(b2) * v + T(1 - b2) * g * g;
    w = T(1 - lost) * w - T(size) * m / (r > 0 ? std::sqrt(v) * T(scale) + T(epsilon) : T(1));
  };
  if (each_element<2>(p, one)) return;
  const Tensors &m = p.slots[0], &v = p.slots[1];
  update_mean(m, p.g, c.beta1);
  update_mean_square(v, p.g, c.beta2);
  shrink(p.w, lost);
  if (r == 0) return at::_foreach_add_(p.w, m, -size);
  at::_foreach_addcdiv_(p.w, m, root(v, below, c.epsilon), -size);
}

void Radam::setup(Session& session) {
  set_list_optimizer(session, config_, {{"radam.m", SlotKind::kGradient}, {"radam.v", SlotKind::kSecondMoment}}, radam_update);
}

}  // namespace huajin
