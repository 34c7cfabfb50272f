#include "huajin/optim/learning_rate/radam/radam.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>

#include <cmath>

namespace huajin {

double rectification(double beta2, int64_t step) {
  const auto t = static_cast<double>(step);
  const double most = 2 / (1 - beta2) - 1, left = std::pow(beta2, t);
  const double rho = most - 2 * t * left / (1 - left);
  if (rho <= 4) return 0;
  return std::sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho));
}

void radam_update(const ParameterLists& p, const RadamConfig& c) {
  const Tensors &m = p.slots[0], &v = p.slots[1];
  const auto step = static_cast<double>(p.step);
  update_mean(m, p.g, c.beta1);
  update_mean_square(v, p.g, c.beta2);
  shrink(p.w, p.rate * p.decay(c.weight_decay));
  const double r = rectification(c.beta2, p.step), size = -p.rate / (1 - std::pow(c.beta1, step));
  if (r == 0) return at::_foreach_add_(p.w, m, size);
  at::_foreach_addcdiv_(p.w, m, root(v, 1 - std::pow(c.beta2, step), c.epsilon), r * size);
}

void Radam::setup(Session& session) {
  set_list_optimizer(session, config_, {{"radam.m", SlotKind::kGradient}, {"radam.v", SlotKind::kSecondMoment}}, Reach::kElement, radam_update);
}

}  // namespace huajin
