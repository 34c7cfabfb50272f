// Weights that are bfloat16 numbers: after each update they are rounded up or down at random, with the probability that makes the mean exact. Rounding to the
// nearest would lose every update that is smaller than half a step of bfloat16 (2^-9 of the weight). Gupta et al., "Deep Learning with Limited Numerical
// Precision", ICML 2015 (arXiv 1502.02551), section 3.1; for bfloat16 weights Zamirai et al., "Revisiting BFloat16 Training", 2020 (arXiv 2010.06192).
#pragma once
#include <cstdint>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct StochasticRoundingConfig {
  bool vectors = false;
  void fields(Fields& f) { f.flag("vectors", vectors, "also biases and gains of norms; false: matrices and larger only"); }
};

// In place; float32 or float64, on the CPU. With a and b the neighbouring bfloat16 numbers of x, a <= x <= b: b with probability (x - a) / (b - a), else a. Numbers
// that bfloat16 holds, infinite ones and NaN stay. Element i is a function of (key, i); above the largest bfloat16 number it may become infinite.
void round_to_bfloat16(Tensor& values, uint64_t key);

// Values stay in their storage of master precision: this is the arithmetic of bfloat16 weights, not their memory.
class StochasticRounding : public Technique {
 public:
  explicit StochasticRounding(const StochasticRoundingConfig& config) : config_(config) {}
  std::string_view name() const override { return "stochastic_rounding"; }
  Needs needs() const override { return kMovesWeights; }
  void update(Step& step, FunctionRef<void()> next) override;

 private:
  StochasticRoundingConfig config_;
};

}  // namespace huajin
