#include "huajin/zoo/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>

#include <cmath>

#include "huajin/core/errors.h"
#include "huajin/zoo/fused.h"
#include "huajin/zoo/product.h"

namespace huajin {
namespace {

WeightOptions linear_weight(const Linear::Options& o) {
  const int outputs = o.transposed ? 1 : 0;
  WeightOptions w{.init = o.init, .role = o.role, .parts = o.parts};
  if (o.cut == Cut::kOutputs) w.cut = outputs;
  if (o.cut == Cut::kInputs) w.cut = 1 - outputs;
  return w;
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, Options options)
    : options_(options),
      weight_(this, "weight", options.transposed ? std::vector<int64_t>{in, out} : std::vector<int64_t>{out, in}, linear_weight(options)) {
  if (options_.bias)
    bias_ = std::make_unique<Weight>(this, "bias", std::vector<int64_t>{out},
                                     WeightOptions{.role = Role::kBias, .cut = options.cut == Cut::kOutputs ? 0 : -1, .parts = options.parts});
}

std::unique_ptr<Linear> Linear::columns(int64_t in, int64_t out, Options options) {
  options.cut = Cut::kOutputs;
  return std::make_unique<Linear>(in, out, options);
}
std::unique_ptr<Linear> Linear::rows(int64_t in, int64_t out, Options options) {
  options.cut = Cut::kInputs;
  return std::make_unique<Linear>(in, out, options);
}

Tensor Linear::forward(Forward& f, const Tensor& x) const {
  const Tensor& w = f[weight_];
  const auto product = [&](const Tensor& input, const Tensor& bias) { return linear(input, w, bias, options_.transposed); };
  const Tensor bias = bias_ ? f[*bias_] : Tensor();
  if (options_.cut == Cut::kInputs && f.ranks > 1) {  // partial sums: the bias is added once, after they met
    const Tensor y = f.leave(product(x, Tensor()));
    return bias.defined() ? y + bias : y;
  }
  return product(options_.cut == Cut::kOutputs ? f.enter(x) : x, bias);
}

Embedding::Embedding(int64_t count, int64_t width, Init init)
    : weight_(this, "weight", {count, width}, {.init = init, .role = Role::kEmbedding, .cut = 0}) {}
Tensor Embedding::forward(Forward& f, const Tensor& ids) const { return f.rows(weight_, ids); }

RmsNorm::RmsNorm(int64_t width, double epsilon, bool partial)
    : epsilon_(epsilon), weight_(this, "weight", {width}, {.init = ones(), .role = Role::kNorm, .partial = partial, .keep_precision = true}) {}
Tensor RmsNorm::forward(Forward& f, const Tensor& x) const {
  const Tensor& w = f[weight_];
  return fused::rms_norm(x.to(w.scalar_type()), w, epsilon_).to(x.scalar_type());
}

LayerNorm::LayerNorm(int64_t width, double epsilon)
    : width_(width),
      epsilon_(epsilon),
      weight_(this, "weight", {width}, {.init = ones(), .role = Role::kNorm, .keep_precision = true}),
      bias_(this, "bias", {width}, {.role = Role::kBias, .keep_precision = true}) {}
Tensor LayerNorm::forward(Forward& f, const Tensor& x) const {
  const Tensor& w = f[weight_];
  return at::layer_norm(x.to(w.scalar_type()), {width_}, w, f[bias_], epsilon_).to(x.scalar_type());
}


Init residual_init(double base, int64_t layers, bool zero) { return zero ? zeros() : normal(base / std::sqrt(2.0 * static_cast<double>(layers))); }

void check_heads(const std::string& model, int64_t width, int64_t heads, int64_t kv_heads) {
  if (heads < 1 || width % heads != 0 || width / heads % 2 != 0)
    throw UserError(model + ": width = " + std::to_string(width) + " must be heads = " + std::to_string(heads) +
                    " times an even head size; take width = " + std::to_string((width + 2 * heads - 1) / (2 * heads) * (2 * heads)));
  if (kv_heads < 1 || heads % kv_heads != 0)
    throw UserError(model + ": heads = " + std::to_string(heads) + " must be a multiple of kv_heads = " + std::to_string(kv_heads) +
                    "; take kv_heads = 1 or " + std::to_string(heads));
}

}  // namespace huajin
