#include "huajin/zoo/resnet.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <array>
#include <cmath>
#include <memory>

#include "huajin/core/errors.h"
#include "huajin/zoo/convolution.h"
#include "huajin/zoo/layers.h"

namespace huajin {
namespace {

struct Pixels {
  int64_t height, width;
  int64_t count() const { return height * width; }
  Pixels after(int64_t kernel, int64_t stride, int64_t padding) const {
    return {reduced("model resnet", height, kernel, stride, padding), reduced("model resnet", width, kernel, stride, padding)};
  }
};

struct ResNetStem : Layer {
  ResNetStem(const ResNetConfig& c, int64_t pixels)
      : large(c.large_stem),
        conv1(this, "conv1",
              make<Conv2d>(c.channels, c.filters, pixels,
                           Conv2d::Options{.kernel = large ? 7 : 3, .stride = large ? 2 : 1, .padding = large ? 3 : 1, .role = Role::kEmbedding})),
        bn1(this, "bn1", make<BatchNorm2d>(c.filters, BatchNorm2d::Options{.momentum = c.momentum})) {}
  const bool large;
  Part<> conv1, bn1;
  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor y = at::relu(bn1(f, conv1(f, x)));
    return large ? at::max_pool2d(y, {3, 3}, {2, 2}, {1, 1}) : y;
  }
};

struct BasicBlock : Layer {
  BasicBlock(const ResNetConfig& c, int64_t in, int64_t out, int64_t stride, int64_t pixels)
      : conv1(this, "conv1", make<Conv2d>(in, out, pixels, Conv2d::Options{.stride = stride})),
        bn1(this, "bn1", make<BatchNorm2d>(out, BatchNorm2d::Options{.momentum = c.momentum})),
        conv2(this, "conv2", make<Conv2d>(out, out, pixels, Conv2d::Options{})),
        bn2(this, "bn2", make<BatchNorm2d>(out, BatchNorm2d::Options{.momentum = c.momentum, .scale_init = c.zero_scale ? zeros() : ones()})) {
    if (stride == 1 && in == out) return;
    shortcut = make<Part<>>(this, "downsample.0", make<Conv2d>(in, out, pixels, Conv2d::Options{.kernel = 1, .stride = stride, .padding = 0}));
    shortcut_norm = make<Part<>>(this, "downsample.1", make<BatchNorm2d>(out, BatchNorm2d::Options{.momentum = c.momentum}));
  }
  Part<> conv1, bn1, conv2, bn2;
  std::unique_ptr<Part<>> shortcut, shortcut_norm;
  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor y = bn2(f, conv2(f, at::relu(bn1(f, conv1(f, x)))));
    return at::relu(y + (shortcut ? (*shortcut_norm)(f, (*shortcut)(f, x)) : x));
  }
};

struct AveragePool : Layer {  // [B, C, H, W] -> [B, C]
  Tensor forward(Forward&, const Tensor& x) const override { return x.mean({2, 3}); }
};

std::array<int64_t, 4> blocks_of(int64_t depth) {
  if (depth == 10) return {1, 1, 1, 1};
  if (depth == 18) return {2, 2, 2, 2};
  if (depth == 34) return {3, 4, 6, 3};
  throw UserError("model resnet: depth = " + std::to_string(depth) + " is not known; take model.depth = 10, 18 or 34");
}

}  // namespace

void ResNetConfig::fields(Fields& f) {
  f.integer("depth", depth, {.least = 10, .most = 34}, "layers: 10, 18 or 34");
  f.integer("filters", filters, {.least = 1, .most = 16384}, "of the first stage; each of the three later ones has twice as many");
  f.flag("large_stem", large_stem, "7 x 7 convolution with stride 2 and pooling first: for images of 100 pixels and more");
  f.flag("zero_scale", zero_scale, "the last norm of each block starts at zero: each block begins as the identity");
  f.number("momentum", momentum, {.least = 0, .most = 1, .open = true}, "weight of the newest step in the running statistics");
}

Model resnet(const ResNetConfig& c) {
  const auto blocks = blocks_of(c.depth);
  Model m;
  Pixels pixels{c.height, c.width};
  if (c.large_stem) pixels = pixels.after(7, 2, 3);
  m.add("", make<ResNetStem>(c, pixels.count()));
  if (c.large_stem) pixels = pixels.after(3, 2, 1);
  int64_t in = c.filters;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t out = c.filters << stage;
    for (int64_t b = 0; b < blocks[static_cast<size_t>(stage)]; ++b) {
      const int64_t stride = stage > 0 && b == 0 ? 2 : 1;
      if (stride == 2) pixels = pixels.after(3, 2, 1);
      m.add("layer" + std::to_string(stage + 1) + "." + std::to_string(b), make<BasicBlock>(c, in, out, stride, pixels.count()));
      in = out;
    }
  }
  m.add("pool", make<AveragePool>());
  m.add("fc",
        make<Linear>(in, c.classes, Linear::Options{.bias = true, .init = normal(std::sqrt(1.0 / static_cast<double>(in))), .role = Role::kHead}));
  return m;
}

}  // namespace huajin
