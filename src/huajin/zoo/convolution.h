// Layers for images [B, C, H, W].
#pragma once
#include <cstdint>
#include <memory>

#include "huajin/core/model.h"

namespace huajin {

// Square kernels W [out, in, k, k]; `pixels`: of one output image, for the count of operations.
class Conv2d : public Layer {
 public:
  struct Options {
    int64_t kernel = 3, stride = 1, padding = 1;
    bool bias = false;
    Role role = Role::kHidden;
    Init init{};  // kZeros: Kaiming for rectified units, fan out (He et al., 2015, equation 14)
  };
  Conv2d(int64_t in, int64_t out, int64_t pixels, Options options);
  Tensor forward(Forward& f, const Tensor& x) const override;
  double extra_flops(int64_t) const override { return flops_; }

 private:
  Options options_;
  double flops_;
  Weight weight_;
  std::unique_ptr<Weight> bias_;
};

// Each channel normalised over [B, H, W] (Ioffe and Szegedy, 2015): in training by the micro-batch's own mean and variance, which are recorded for
// the running ones (core/model.h); in evaluation by the running ones. `momentum` is the weight of the newest step. Statistics stay in the weight's
// precision.
class BatchNorm2d : public Layer {
 public:
  struct Options {
    double momentum = 0.1, epsilon = 1e-5;
    bool scale = true;  // false: no weight (all ones)
    Init scale_init{Init::kOnes, 1};
  };
  BatchNorm2d(int64_t channels, Options options);
  Tensor forward(Forward& f, const Tensor& x) const override;

 private:
  Options options_;
  std::unique_ptr<Weight> weight_;
  Weight bias_, mean_, variance_;
};

// Size of an image after a convolution or pooling. UserError naming `model` where nothing is left.
int64_t reduced(const char* model, int64_t size, int64_t kernel, int64_t stride, int64_t padding);

}  // namespace huajin
