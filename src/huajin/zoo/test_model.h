// A model with values, run as one graph: for tests of models.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "huajin/core/engine_forward.h"
#include "huajin/core/session.h"

namespace huajin {

struct TestModel {
  Model model;
  std::vector<Model::Entry> entries;
  std::vector<Tensor> values;
  EngineForward forward;

  explicit TestModel(Model m, at::ScalarType type = at::kDouble, uint64_t seed = 5) : model(std::move(m)), entries(model.number()) {
    for (auto& e : entries) {
      values.push_back(initial_value(*e.weight, e.name, seed, type, at::kCPU));
      if (e.weight->options.trainable) values.back().requires_grad_(true);
    }
    forward.table = values.data();
    forward.dtype = type;
  }
  Tensor operator()(const Tensor& inputs) {
    Flow x{inputs};
    forward.row_streams.assign(static_cast<size_t>(inputs.size(0)), 0);
    for (size_t i = 0; i < forward.row_streams.size(); ++i) forward.row_streams[i] = i;
    forward.recorded.clear();
    for (auto& block : model.blocks) x = block.layer->flow(forward, std::move(x));
    return x[0];
  }
  // Moves every weight away from its initial value, so that norms, biases and zeroed projections take part.
  void shake(double deviation) {
    at::NoGradGuard off;
    for (auto& v : values)
      if (v.requires_grad()) v.add_(at::randn(v.sizes(), v.options().requires_grad(false)), deviation);
  }
};

// Worst relative difference of two tensors in units of the second's largest element.
inline double relative_difference(const Tensor& a, const Tensor& b) {
  const double scale = b.to(at::kDouble).abs().max().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() / std::max(scale, 1e-300);
}

}  // namespace huajin
