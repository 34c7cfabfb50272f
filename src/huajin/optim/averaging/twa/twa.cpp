#include "huajin/optim/averaging/twa/twa.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

double inner_product(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i].to(at::kDouble) * b[i].to(at::kDouble)).sum().item<double>();
  return sum;
}

}  // namespace

Tensor gram_inverse(const Snapshots& snapshots) {
  const auto n = static_cast<int64_t>(snapshots.size());
  Tensor gram = at::empty({n, n}, at::kDouble);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) gram[i][j] = gram[j][i] = inner_product(snapshots[static_cast<size_t>(i)], snapshots[static_cast<size_t>(j)]);
  const auto [values, vectors] = at::linalg_eigh(gram);
  const double floor = 1e-12 * values.max().item<double>();
  const Tensor inverse = at::where(values > floor, 1 / values.clamp_min(floor + 1e-300), at::zeros_like(values));
  return vectors.matmul(inverse.unsqueeze(1) * vectors.t());
}

Tensor span_coefficients(const Snapshots& snapshots, const Tensor& inverse, const std::vector<Tensor>& step) {
  Tensor along = at::empty({static_cast<int64_t>(snapshots.size())}, at::kDouble);
  for (size_t i = 0; i < snapshots.size(); ++i) along[static_cast<int64_t>(i)] = inner_product(snapshots[i], step);
  return inverse.matmul(along);
}

void combine(const std::vector<Tensor>& weights, const Snapshots& snapshots, const Tensor& coefficients) {
  for (size_t p = 0; p < weights.size(); ++p) {
    Tensor sum = at::zeros_like(weights[p], at::TensorOptions(at::kDouble));
    for (size_t i = 0; i < snapshots.size(); ++i) sum.add_(snapshots[i][p], coefficients[static_cast<int64_t>(i)].item());
    Tensor value = weights[p];
    value.copy_(sum);
  }
}

Twa::Twa(const TwaConfig& config) : config_(config) {
  if (config.from >= config.start)
    throw UserError(fmt::format("twa.from={} and twa.start={}: snapshots are taken between the two; give a smaller twa.from", config.from, config.start));
}

void Twa::setup(Session& session) {
  for (int64_t i = 0; i < config_.snapshots; ++i) session.declare_slot(slot(i), SlotKind::kValue);
}

Snapshots Twa::snapshots(Session& session) const {
  Snapshots all(static_cast<size_t>(config_.snapshots));
  for (int64_t i = 0; i < config_.snapshots; ++i)
    for (Parameter* p : session.parameters()) all[static_cast<size_t>(i)].push_back(session.slot(slot(i), *p));
  return all;
}

// The equal average is where it starts. What the optimizer remembers of the way there is of no use any more.
void Twa::begin(Session& session) {
  coefficients_ = at::full({config_.snapshots}, 1.0 / static_cast<double>(config_.snapshots), at::kDouble);
  std::vector<Tensor> weights;
  for (Parameter* p : session.parameters()) {
    weights.push_back(p->value);
    session.each_slot(*p, [](SlotKind kind, Tensor& tensor) {
      if (kind == SlotKind::kGradient) tensor.zero_();
    });
  }
  combine(weights, snapshots(session), coefficients_);
}

void Twa::update(Step& step, FunctionRef<void()> next) {
  if (!coefficients_.defined()) return next();
  at::NoGradGuard off;
  const Snapshots span = snapshots(step.session);
  std::vector<Tensor> weights, moved;
  int64_t elements = 0;
  for (Parameter* p : step.session.parameters()) {
    weights.push_back(p->value);
    moved.push_back(p->value.clone());
    elements += p->value.numel();
  }
  if (!inverse_.defined() || elements != elements_) inverse_ = gram_inverse(span), elements_ = elements;
  next();
  for (size_t i = 0; i < weights.size(); ++i) moved[i] = weights[i] - moved[i];
  coefficients_ = coefficients_ + config_.rate * span_coefficients(span, inverse_, moved);
  combine(weights, span, coefficients_);
}

void Twa::after_step(Step& step) {
  if (coefficients_.defined()) return;
  at::NoGradGuard off;
  const double fraction = step.progress.fraction, n = static_cast<double>(config_.snapshots);
  if (count_ < n && fraction >= config_.from + (config_.start - config_.from) * count_ / (n - 1) - 1e-12) {
    const std::string mine = slot(static_cast<int64_t>(count_));
    for (Parameter* p : step.session.parameters()) step.session.slot(mine, *p).copy_(p->value);
    count_ += 1;
  }
  if (count_ == n && fraction >= config_.start) begin(step.session);
}

void Twa::serialize(Archive& archive) {
  archive.number("count", count_);
  archive.tensor("coefficients", coefficients_);
  inverse_ = Tensor();
}

}  // namespace huajin
