#include "huajin/optim/large_batch/trust_ratio.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/unbind.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

struct Layers {
  Tensors x, w, ratios;
};
Layers decaying(const ParameterLists& p, const Tensors& x, const Tensors& ratios) {
  Layers layers;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!p.parameters[i]->decay) continue;
    layers.x.push_back(x[i]);
    layers.w.push_back(p.w[i]);
    if (!ratios.empty()) layers.ratios.push_back(ratios[i]);
  }
  return layers;
}

}  // namespace

Tensor norms_of(Session& session, const ParameterLists& p, const Tensors& x) {
  const auto all = session.parameters();
  if (!std::ranges::equal(all, p.parameters))
    throw Error(kExitInternal, "layer-wise optimizer: it was given some parameters; it must say kAllGradients");
  size_t next = 0;  // norms() asks in the table's order
  return session.norms([&](const Parameter&) { return x[next++]; });
}

Tensor ratio_or_one(const Tensor& numerator, const Tensor& denominator) {
  return at::where((numerator > 0).logical_and(denominator > 0), numerator / denominator, at::ones_like(numerator));
}

void scale_layers(const ParameterLists& p, const Tensors& x, const Tensor& ratios) {
  const Layers layers = decaying(p, x, at::unbind(ratios));
  if (!layers.x.empty()) at::_foreach_mul_(layers.x, layers.ratios);
}

void add_decay(const ParameterLists& p, const Tensors& x, double weight_decay) {
  const Layers layers = decaying(p, x, {});
  if (weight_decay > 0 && !layers.x.empty()) at::_foreach_add_(layers.x, layers.w, weight_decay);
}

}  // namespace huajin
