#include "huajin/zoo/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>

#include <cmath>

#include "huajin/zoo/fused.h"
#include "huajin/zoo/layers.h"

namespace huajin {
namespace {

struct MlpLayer : Layer {
  MlpLayer(int64_t in, const MlpConfig& c)
      : config(c), linear(this, "", Linear::columns(in, c.width, {.bias = true, .init = normal(std::sqrt(2.0 / static_cast<double>(in)))})) {}
  const MlpConfig config;
  Part<> linear;
  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor h = linear(f, x.flatten(1));
    const Tensor y = config.activation == "gelu" ? fused::gelu_tanh(h) : config.activation == "relu2" ? fused::relu_squared(h) : at::relu(h);
    return f.dropout(y, config.dropout, *this, 0, true);
  }
};

}  // namespace

void MlpConfig::fields(Fields& f) {
  f.integer("layers", layers, {.least = 1, .most = 1024}, "hidden layers");
  f.integer("width", width, {.least = 1, .most = 1 << 20}, "units of a hidden layer");
  f.text("activation", activation, {"relu", "gelu", "relu2"}, "of hidden units");
  f.number("dropout", dropout, {.least = 0, .most = 1, .open_most = true}, "share of hidden units set to zero");
}

Model mlp(const MlpConfig& c) {
  Model m;
  for (int64_t l = 0; l < c.layers; ++l) m.add("layers." + std::to_string(l), make<MlpLayer>(l == 0 ? c.inputs : c.width, c));
  m.add("head", make<Linear>(c.width, c.classes,
                             Linear::Options{.bias = true, .init = normal(std::sqrt(1.0 / static_cast<double>(c.width))), .role = Role::kHead}));
  return m;
}

}  // namespace huajin
