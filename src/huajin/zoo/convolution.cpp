#include "huajin/zoo/convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/native_batch_norm.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/errors.h"

namespace huajin {

Conv2d::Conv2d(int64_t in, int64_t out, int64_t pixels, Options o)
    : options_(o),
      flops_(2.0 * static_cast<double>(in * out * o.kernel * o.kernel) * static_cast<double>(pixels)),
      weight_(
          this, "weight", {out, in, o.kernel, o.kernel},
          {.init = o.init.kind == Init::kZeros ? normal(std::sqrt(2.0 / static_cast<double>(out * o.kernel * o.kernel))) : o.init, .role = o.role}) {
  if (o.bias) bias_ = std::make_unique<Weight>(this, "bias", std::vector<int64_t>{out}, WeightOptions{.role = Role::kBias});
}

Tensor Conv2d::forward(Forward& f, const Tensor& x) const {
  const int64_t stride[] = {options_.stride, options_.stride}, padding[] = {options_.padding, options_.padding};
  return at::conv2d(x, f[weight_], bias_ ? f[*bias_] : Tensor(), stride, padding);
}

BatchNorm2d::BatchNorm2d(int64_t channels, Options o)
    : options_(o),
      weight_(o.scale ? std::make_unique<Weight>(this, "weight", std::vector<int64_t>{channels},
                                                 WeightOptions{.init = o.scale_init, .role = Role::kNorm, .keep_precision = true})
                      : nullptr),
      bias_(this, "bias", {channels}, {.role = Role::kBias, .keep_precision = true}),
      mean_(this, "running_mean", {channels}, {.role = Role::kStatistic, .keep_precision = true, .trainable = false, .momentum = o.momentum}),
      variance_(this, "running_var", {channels},
                {.init = ones(), .role = Role::kStatistic, .keep_precision = true, .trainable = false, .momentum = o.momentum}) {}

Tensor BatchNorm2d::forward(Forward& f, const Tensor& x) const {
  const Tensor w = weight_ ? f[*weight_] : Tensor();
  const Tensor& b = f[bias_];
  const double epsilon = options_.epsilon;
  if (!f.training) return at::batch_norm(x, w, b, f[mean_], f[variance_], false, 0, epsilon, false);
  auto [y, mean, inverse] = at::native_batch_norm(x, w, b, {}, {}, true, 0, epsilon);
  const double count = static_cast<double>(x.numel() / x.size(1));
  // The kernel returns 1 / sqrt(variance + epsilon) of the biased variance; the running one is unbiased.
  const Tensor variance = (inverse.detach().to(b.scalar_type()).pow(-2) - epsilon) * (count / std::max(count - 1, 1.0));
  f.record(mean_, mean.detach(), count);
  f.record(variance_, variance, count);
  return y;
}

int64_t reduced(const char* model, int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t left = (size + 2 * padding - kernel) / stride + 1;
  if (size + 2 * padding < kernel || left < 1)
    throw UserError(std::string(model) + ": images are too small, nothing is left of a side of " + std::to_string(size) + " after its poolings; use model.name=\"mlp\"");
  return left;
}

}  // namespace huajin
