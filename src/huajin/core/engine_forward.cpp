#include "huajin/core/engine_forward.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <torch/csrc/autograd/custom_function.h>

#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

Tensor take_rows(const Tensor& table, const Tensor& ids) {
  auto shape = ids.sizes().vec();
  shape.push_back(table.size(1));
  return at::index_select(table, 0, ids.reshape(-1)).view(shape);
}

struct RowsFunction : torch::autograd::Function<RowsFunction> {
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& table, const Tensor& ids, int64_t sink, int64_t id) {
    ctx->saved_data["ids"] = ids;
    ctx->saved_data["sink"] = sink;
    ctx->saved_data["id"] = id;
    return take_rows(table, ids);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    const Tensor ids = ctx->saved_data["ids"].toTensor();
    auto* sink = reinterpret_cast<GradientSink*>(ctx->saved_data["sink"].toInt());
    sink->add_rows(static_cast<int>(ctx->saved_data["id"].toInt()), ids.reshape(-1), grads[0].reshape({ids.numel(), grads[0].size(-1)}));
    return {Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor EngineForward::rows(const Weight& weight, const Tensor& ids) {
  const Tensor& working = table[weight.id];
  if (sink == nullptr || !working.requires_grad() || !at::GradMode::is_enabled()) return take_rows(working, ids);
  return RowsFunction::apply(working, ids, reinterpret_cast<int64_t>(sink), weight.id);
}

Tensor EngineForward::dropout(const Tensor& x, double p, const Layer& where, int purpose, bool cut) {
  if (!training || p <= 0) return x;
  const uint64_t place = mix(noise_key, static_cast<uint64_t>(Purpose::kDropout), static_cast<uint64_t>(where.number), static_cast<uint64_t>(purpose));
  const int64_t rows = static_cast<int64_t>(row_streams.size());
  const int64_t width = x.size(-1);
  if (items.defined()) {  // dispatched rows: each keeps the coordinates that it had
    const Tensor item_index = items.to(at::kLong).contiguous();
    const int64_t* index = item_index.const_data_ptr<int64_t>();
    const int64_t length = std::max<int64_t>(1, row_items / std::max<int64_t>(1, rows));
    std::vector<uint64_t> keys(item_index.numel());
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = mix(place, row_streams.at(index[i] / length), 1 + static_cast<uint64_t>(index[i] % length));
    return x * keep_mask(keys.data(), static_cast<int64_t>(keys.size()), width, 1 - p, x.scalar_type()).view(x.sizes());
  }
  if (x.size(0) != rows) throw Error(kExitInternal, "dropout: the first dimension must be the micro-batch's rows");
  std::vector<uint64_t> keys(row_streams.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = mix(place, row_streams[i]);
  return x * keep_mask(keys.data(), rows, x.numel() / std::max<int64_t>(rows, 1), 1 - p, x.scalar_type()).view(x.sizes()).to(x.device());
}

void EngineForward::add(std::string_view name, const Tensor& term, double scale) { added.push_back({std::string(name), term, scale}); }

void EngineForward::record(const Weight& statistic, const Tensor& mean, double count) {
  if (!recomputing) recorded.push_back({statistic.id, mean.detach(), count});
}

}  // namespace huajin
