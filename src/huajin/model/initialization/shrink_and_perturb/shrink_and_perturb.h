// Shrink and perturb, before training goes on from trained weights: w <- shrink w + noise z, z standard normal. Ash & Adams, "On Warm-Starting Neural
// Network Training", NeurIPS 2020 (arXiv 1910.08475), section 4: new data are then learned as well as from scratch, in less time.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct ShrinkAndPerturbConfig {
  double shrink = 0.6, noise = 0.01;
  void fields(Fields& f) {
    f.number("shrink", shrink, {.least = 0, .most = 1}, "factor on the weights before the first step; 1: as they are");
    f.number("noise", noise, {.least = 0}, "standard deviation of what is then added; 0: nothing");
  }
};

// In place. float32 or float64; the same numbers in both, rounded. shrink = 1 and noise = 0 change nothing.
void shrink_and_perturb(Tensor value, const ShrinkAndPerturbConfig& config, uint64_t key);

// Once, before the first pass of a new run, and not again when it is resumed. Matrices and larger; gains, biases and statistics stay.
class ShrinkAndPerturb : public Technique {
 public:
  explicit ShrinkAndPerturb(const ShrinkAndPerturbConfig& config) : config_(config) {}
  std::string_view name() const override { return "shrink_and_perturb"; }
  Needs needs() const override { return kMovesWeights; }
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;
  void serialize(Archive& archive) override;

 private:
  ShrinkAndPerturbConfig config_;
  bool done_ = false;  // of this run: a first step that is skipped does not shrink twice
};

}  // namespace huajin
