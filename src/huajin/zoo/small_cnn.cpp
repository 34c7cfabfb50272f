#include "huajin/zoo/small_cnn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/max_pool2d.h>

#include <cmath>

#include "huajin/zoo/convolution.h"
#include "huajin/zoo/layers.h"

namespace huajin {
namespace {

struct SmallCnnFirst : Layer {  // 2 x 2 without padding: an odd side, so that poolings cut nothing off
  SmallCnnFirst(const SmallCnnConfig& c, int64_t pixels)
      : conv(this, "",
             make<Conv2d>(c.channels, c.first, pixels, Conv2d::Options{.kernel = 2, .padding = 0, .bias = true, .role = Role::kEmbedding})) {}
  Part<> conv;
  Tensor forward(Forward& f, const Tensor& x) const override { return at::gelu(conv(f, x)); }
};

struct SmallCnnGroup : Layer {
  SmallCnnGroup(const SmallCnnConfig& c, int64_t in, int64_t out, int64_t pixels, int64_t pooled)
      : conv1(this, "conv1", make<Conv2d>(in, out, pixels, Conv2d::Options{})),
        norm1(this, "norm1", make<BatchNorm2d>(out, BatchNorm2d::Options{.momentum = c.momentum, .scale = false})),
        conv2(this, "conv2", make<Conv2d>(out, out, pooled, Conv2d::Options{})),
        norm2(this, "norm2", make<BatchNorm2d>(out, BatchNorm2d::Options{.momentum = c.momentum, .scale = false})) {}
  Part<> conv1, norm1, conv2, norm2;
  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor y = at::gelu(norm1(f, at::max_pool2d(conv1(f, x), {2, 2})));
    return at::gelu(norm2(f, conv2(f, y)));
  }
};

struct MaximumPool : Layer {  // [B, C, H, W] -> [B, C]
  Tensor forward(Forward&, const Tensor& x) const override { return x.amax({2, 3}); }
};

struct ScaledHead : Layer {
  explicit ScaledHead(const SmallCnnConfig& c)
      : scale(c.head_scale),
        linear(
            this, "",
            make<Linear>(c.group3, c.classes, Linear::Options{.init = normal(std::sqrt(1.0 / static_cast<double>(c.group3))), .role = Role::kHead})) {
  }
  const double scale;
  Part<> linear;
  Tensor forward(Forward& f, const Tensor& x) const override { return linear(f, x) * scale; }
};

}  // namespace

void SmallCnnConfig::fields(Fields& f) {
  f.integer("first", first, {.least = 1, .most = 16384}, "filters of the first convolution");
  f.integer("group1", group1, {.least = 1, .most = 16384}, "filters of the first group");
  f.integer("group2", group2, {.least = 1, .most = 16384}, "filters of the second group");
  f.integer("group3", group3, {.least = 1, .most = 16384}, "filters of the third group");
  f.number("head_scale", head_scale, {.least = 0, .open = true}, "factor on the logits: small keeps the first steps calm");
  f.number("momentum", momentum, {.least = 0, .most = 1, .open = true}, "weight of the newest step in the running statistics");
}

Model small_cnn(const SmallCnnConfig& c) {
  Model m;
  int64_t height = reduced("model small_cnn", c.height, 2, 1, 0), width = reduced("model small_cnn", c.width, 2, 1, 0), in = c.first;
  m.add("first", make<SmallCnnFirst>(c, height * width));
  const int64_t filters[] = {c.group1, c.group2, c.group3};
  for (int g = 0; g < 3; ++g) {
    const int64_t pixels = height * width;
    height = reduced("model small_cnn", height, 2, 2, 0);
    width = reduced("model small_cnn", width, 2, 2, 0);
    m.add("groups." + std::to_string(g), make<SmallCnnGroup>(c, in, filters[g], pixels, height * width));
    in = filters[g];
  }
  m.add("pool", make<MaximumPool>());
  m.add("head", make<ScaledHead>(c));
  return m;
}

}  // namespace huajin
