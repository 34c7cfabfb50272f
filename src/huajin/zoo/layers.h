// Layers that models are built of (core/model.h). Shapes: B rows, T tokens, D width.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "huajin/core/model.h"

namespace huajin {

enum class Cut { kNone, kOutputs, kInputs };  // over the tensor axis

// y = x W^T + b, W [out, in]; transposed: W [in, out] (Conv1D in Hugging Face's GPT-2).
class Linear : public Layer {
 public:
  struct Options {
    bool bias = false;
    bool transposed = false;
    Init init{Init::kNormal, 0.02};
    Role role = Role::kHidden;
    int parts = 1;  // fused matrices along the outputs
    Cut cut = Cut::kNone;
  };
  Linear(int64_t in, int64_t out, Options options);
  // Cut by outputs (its input is whole), and cut by inputs (its output is summed): the pair that a tensor-parallel block is made of.
  static std::unique_ptr<Linear> columns(int64_t in, int64_t out, Options options);
  static std::unique_ptr<Linear> rows(int64_t in, int64_t out, Options options);
  Tensor forward(Forward& f, const Tensor& x) const override;

 private:
  Options options_;
  Weight weight_;
  std::unique_ptr<Weight> bias_;
};

// Rows of a table for ids [B, T] int64 -> [B, T, D].
class Embedding : public Layer {
 public:
  Embedding(int64_t count, int64_t width, Init init);
  Tensor forward(Forward& f, const Tensor& ids) const override;

 private:
  Weight weight_;
};

// x / sqrt(mean(x^2) + epsilon) * w over the last dimension (Zhang and Sennrich, 2019, equation 4). Computed in the weight's precision. `partial`:
// the weight acts on a cut activation (core/model.h).
class RmsNorm : public Layer {
 public:
  RmsNorm(int64_t width, double epsilon, bool partial = false);
  Tensor forward(Forward& f, const Tensor& x) const override;
  const Weight& weight() const { return weight_; }
  double epsilon() const { return epsilon_; }

 private:
  double epsilon_;
  Weight weight_;
};

// (x - mean) / sqrt(var + epsilon) * w + b over the last dimension (Ba et al., 2016). Computed in the weight's precision.
class LayerNorm : public Layer {
 public:
  LayerNorm(int64_t width, double epsilon);
  Tensor forward(Forward& f, const Tensor& x) const override;

 private:
  int64_t width_;
  double epsilon_;
  Weight weight_, bias_;
};

// Initial deviation of a projection that adds to the residual stream: `base` / sqrt(2 layers), so that the stream's variance does not grow with depth
// (Radford et al., 2019, section 2.3); zero: the block starts as the identity.
Init residual_init(double base, int64_t layers, bool zero);

// UserError "model: what" unless `width` splits into `heads` of equal, even size and `kv_heads` divides `heads`.
void check_heads(const std::string& model, int64_t width, int64_t heads, int64_t kv_heads);

}  // namespace huajin
