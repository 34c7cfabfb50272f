#include "huajin/data/tensor_source.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

void require_pairs(const Tensor& inputs, const Tensor& labels) {
  if (inputs.dim() < 1 || inputs.size(0) == 0) throw UserError("examples in memory: there are none; inputs must be [N, ...] with N >= 1");
  if (labels.dim() != 1 || labels.scalar_type() != at::kLong) throw UserError("examples in memory: labels must be [N] of int64, one a row");
  if (labels.size(0) != inputs.size(0)) throw UserError(fmt::format("examples in memory: {} inputs and {} labels; one label a row", inputs.size(0), labels.size(0)));
}

Examples rows_of(const Tensor& inputs, const Tensor& labels, const Tensor& ids) {
  Examples examples;
  examples.index.id = ids;
  examples.inputs = inputs.index_select(0, ids);
  examples.targets = labels.index_select(0, ids);
  return examples;
}

}  // namespace

TensorSource::TensorSource(Tensor inputs, Tensor labels, int64_t classes) : inputs_(inputs.contiguous()), labels_(labels.contiguous()), classes_(classes) {
  require_pairs(inputs_, labels_);
  const auto least = labels_.min().item<int64_t>(), greatest = labels_.max().item<int64_t>();
  if (least < 0 || greatest >= classes) throw UserError(fmt::format("examples in memory: labels go from {} to {}, allowed are 0 to {}", least, greatest, classes - 1));
}

Tensor TensorSource::ids(uint64_t seed, int64_t at, int64_t rows, int64_t) const {
  Tensor out = at::empty({rows}, at::kLong);
  auto* to = out.mutable_data_ptr<int64_t>();
  const int64_t n = size();
  for (int64_t r = 0; r < rows; ++r) {
    const uint64_t key = mix(seed, static_cast<uint64_t>(Purpose::kOrder), static_cast<uint64_t>((at + r) / n));
    to[r] = static_cast<int64_t>(permuted(key, static_cast<uint64_t>((at + r) % n), static_cast<uint64_t>(n)));
  }
  return out;
}

Examples TensorSource::load(const Tensor& ids, int64_t, const Tensor&, int64_t, bool) const { return rows_of(inputs_, labels_, ids); }

TensorEvaluation::TensorEvaluation(Tensor inputs, Tensor labels, int64_t rows) : inputs_(inputs.contiguous()), labels_(labels.contiguous()), rows_(rows) {
  require_pairs(inputs_, labels_);
}

Examples TensorEvaluation::batch(int64_t i) const { return rows_of(inputs_, labels_, at::arange(i * rows_, std::min(inputs_.size(0), (i + 1) * rows_), at::kLong)); }

}  // namespace huajin
