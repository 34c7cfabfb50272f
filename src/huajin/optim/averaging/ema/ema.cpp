#include "huajin/optim/averaging/ema/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/errors.h"

namespace huajin {

double ema_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double decay, double total) {
  total = decay * total + 1;
  if (!average.empty()) at::_foreach_lerp_(average, w, 1 / total);
  return total;
}

void power_ema_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double gamma, double t) {
  const double share = -std::expm1((gamma + 1) * std::log1p(-1 / t));  // 1 - (1 - 1/t)^(gamma+1), exact for large t; 1 at t = 1
  if (!average.empty()) at::_foreach_lerp_(average, w, share);
}

double power_ema_exponent(double sigma) {
  double low = 0, high = 1 / sigma;  // the deviation falls with gamma and is below 1 / gamma
  for (int i = 0; i < 100; ++i) {
    const double gamma = (low + high) / 2;
    (std::sqrt(gamma + 1) / ((gamma + 2) * std::sqrt(gamma + 3)) > sigma ? low : high) = gamma;
  }
  return low;
}

Ema::Ema(const EmaConfig& config) : config_(config), stand_in_(config.stand_in) {
  if (config.sigma == 0) return;
  if (config.decay > 0) throw UserError(fmt::format("ema.decay={} and ema.sigma={}: an average is exponential or a power function; keep one", config.decay, config.sigma));
  gamma_ = power_ema_exponent(config.sigma);
}

void Ema::after_step(Step& step) {
  at::NoGradGuard off;
  stand_in_.see(step);
  const auto [w, average] = weights_and_slot(step.session, "ema.average");
  if (config_.sigma > 0) return power_ema_update(average, w, gamma_, ++total_);
  const double passed = fraction_ < 0 ? 0 : std::max(0.0, step.progress.fraction - fraction_);
  total_ = ema_update(average, w, config_.decay > 0 ? config_.decay : std::exp2(-passed / config_.half_life), total_);
  fraction_ = step.progress.fraction;
}

void Ema::evaluate(Session& session, FunctionRef<void()> next) {
  stand_in_.evaluate(session, total_ > 0, [&](const Parameter& p, Tensor& value) { value.copy_(session.slot("ema.average", p)); }, next);
}

void Ema::serialize(Archive& archive) {
  archive.number("total", total_);
  archive.number("fraction", fraction_);
  stand_in_.serialize(archive);
}

}  // namespace huajin
