#include "huajin/data/regularization/mixup/mixup.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <numbers>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

// In (0, 1): a logarithm of it is finite.
double open_uniform(uint64_t key, uint64_t& counter) { return uniform(key, counter++) + 0x1.0p-54; }

// Logarithm of a draw from Gamma(alpha, 1), as Gamma(alpha + 1) U^(1 / alpha).
double log_gamma_variate(double alpha, uint64_t key, uint64_t& counter) {
  const double d = alpha + 2.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double radius = std::sqrt(-2 * std::log(open_uniform(key, counter)));
    const double x = radius * std::cos(2 * std::numbers::pi * open_uniform(key, counter));
    const double v = std::pow(1 + c * x, 3);
    const double u = open_uniform(key, counter);
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v) + std::log(open_uniform(key, counter)) / alpha;
  }
}

}  // namespace

double beta_variate(double alpha, uint64_t key) {
  uint64_t counter = 0;
  const double a = log_gamma_variate(alpha, key, counter), b = log_gamma_variate(alpha, key, counter);
  return 1 / (1 + std::exp(b - a));
}

void Mixup::setup(Session& session) {
  if (!session.classifies()) throw UserError("mixup: it mixes images, and the data are text; drop mixup");
}

void Mixup::on_batch(Step& step) {
  if (config_.alpha == 0) return;
  Batch& batch = step.batch;
  if (batch.partner.defined()) throw UserError("mixup: another technique of the recipe mixes examples already; keep one");
  const int64_t rows = batch.rows();
  const uint64_t key = mix(step.session.seed(), static_cast<uint64_t>(Purpose::kMix), static_cast<uint64_t>(step.progress.draw));
  const Tensor order = at::empty({rows}, at::kLong), shares = at::empty({rows}, at::kDouble);
  for (int64_t i = 0; i < rows; ++i) {
    order.mutable_data_ptr<int64_t>()[i] = static_cast<int64_t>(permuted(key, static_cast<uint64_t>(i), static_cast<uint64_t>(rows)));
    shares.mutable_data_ptr<double>()[i] = beta_variate(config_.alpha, mix(key, static_cast<uint64_t>(i)));
  }
  batch.partner = batch.id.index_select(0, order);
  batch.input_mix = batch.target_mix = shares;
}

}  // namespace huajin
