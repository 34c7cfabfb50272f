#include "huajin/data/sampling/importance_sampling/importance_sampling.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/nan_to_num.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

constexpr const char* kFactor = "importance_sampling.factor";

}  // namespace

Tensor importance_scores(const Tensor& losses) {
  const Tensor bound = at::nan_to_num(1 - (-losses.to(at::kCPU, at::kDouble)).exp(), 1.0).clamp_min(0);
  return bound.dim() > 1 ? bound.flatten(1).mean(1) : bound;
}

Tensor importance_probabilities(const Tensor& scores, double uniform) {
  const auto many = static_cast<double>(scores.numel());
  const double sum = scores.sum().item<double>();
  if (!(sum > 0)) return at::empty(scores.sizes(), scores.options()).fill_(1 / many);
  return (1 - uniform) * scores / sum + uniform / many;
}

double variance_gain(const Tensor& probabilities) {
  return std::sqrt(static_cast<double>(probabilities.numel()) * probabilities.pow(2).sum().item<double>());
}

Tensor draw_rows(const Tensor& probabilities, int64_t many, uint64_t key) {
  const Tensor cumulative = probabilities.cumsum(0).contiguous(), rows = at::empty({many}, at::kLong);
  const double* begin = cumulative.const_data_ptr<double>();
  const double* end = begin + cumulative.numel();
  for (int64_t j = 0; j < many; ++j) {
    const double u = huajin::uniform(key, static_cast<uint64_t>(j)) * end[-1];
    rows.mutable_data_ptr<int64_t>()[j] = std::min<int64_t>(std::upper_bound(begin, end, u) - begin, cumulative.numel() - 1);
  }
  return rows;
}

Batch select_rows(const Batch& batch, const Tensor& rows) {
  Batch chosen = batch;
  for (Tensor* t : {&chosen.id, &chosen.weight, &chosen.partner, &chosen.input_mix, &chosen.target_mix, &chosen.noise})
    if (t->defined()) *t = t->index_select(0, rows);
  for (auto& [name, t] : chosen.extra) t = t.index_select(0, rows);
  chosen.noise = (chosen.noise.defined() ? chosen.noise : chosen.id).clone();
  std::map<int64_t, uint64_t> seen;
  int64_t* stream = chosen.noise.mutable_data_ptr<int64_t>();
  const int64_t* row = rows.const_data_ptr<int64_t>();
  for (int64_t j = 0; j < rows.numel(); ++j)
    if (const uint64_t before = seen[row[j]]++; before > 0) stream[j] = static_cast<int64_t>(mix(static_cast<uint64_t>(stream[j]), before) >> 1);
  return chosen;
}

void ImportanceSampling::on_batch(Step& step) {
  if (config_.presample == 1) return;
  Batch& batch = step.batch;
  if (batch.group > 1)
    throw UserError("importance_sampling: another technique keeps rows in groups, which cannot be drawn one by one; drop one of the two");
  const int64_t candidates = batch.rows(), kept = candidates / config_.presample;
  seen_ = 0;
  const double least = config_.threshold > 0 ? config_.threshold : (static_cast<double>(config_.presample) + 3) / 3;
  if (gain_ < least && least > 1) {
    batch = select_rows(batch, at::arange(kept, at::kLong));
    return;
  }
  const Tensor p = importance_probabilities(importance_scores(step.session.score(batch, false)), config_.uniform);
  seen_ = variance_gain(p);
  const uint64_t key =
      mix(step.session.seed(), static_cast<uint64_t>(Purpose::kSample), hash_name(name()), static_cast<uint64_t>(step.progress.draw));
  const Tensor rows = draw_rows(p, kept, key);
  batch = select_rows(batch, rows);
  batch.extra[kFactor] = 1 / (static_cast<double>(candidates) * p.index_select(0, rows));
}

// The factor stands in the numerator only. As a row's weight it would also enter the denominator, and a ratio of two estimates is biased.
Loss ImportanceSampling::loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const {
  Loss loss = next(out, in);
  const auto found = in.index.extra.find(kFactor);
  if (found == in.index.extra.end()) return loss;
  Tensor factor = found->second.to(loss.data().options());
  while (factor.dim() < loss.data().dim()) factor = factor.unsqueeze(-1);
  loss.data() = loss.data() * factor;
  return loss;
}

// Not in on_batch(): a step that is skipped leaves no trace.
void ImportanceSampling::after_step(Step& step) {
  if (config_.presample == 1) return;
  if (seen_ == 0 && step.example_loss.defined())
    seen_ = variance_gain(importance_probabilities(importance_scores(step.example_loss), config_.uniform));
  if (seen_ > 0) gain_ = gain_ == 0 ? seen_ : config_.memory * gain_ + (1 - config_.memory) * seen_;
}

}  // namespace huajin
