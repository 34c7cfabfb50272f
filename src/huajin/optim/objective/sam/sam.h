// Sharpness-aware minimisation. Foret et al., "Sharpness-Aware Minimization for Efficiently Improving Generalization", ICLR 2021, equations 2 and 3
// (p = 2).
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct SamConfig {
  double rho = 0.05;
  int64_t every = 1;
  void fields(Fields& f) {
    f.number("rho", rho, {.least = 0}, "radius of the neighbourhood, in units of the weights; 0: off");
    f.integer("every", every, {.least = 1}, "only each so many-th step takes the second pass");
  }
};

// w <- w + rho g / norm for every tensor; `norm` has one element, on the device.
void sam_climb(const std::vector<Tensor>& w, const std::vector<Tensor>& g, const Tensor& norm, double rho);

class Sam : public Technique {
 public:
  explicit Sam(const SamConfig& config) : config_(config) {}
  std::string_view name() const override { return "sam"; }
  Needs needs() const override { return kSeveralPasses | kAllGradients | kMovesWeights; }
  // A probe at w, the gradient at w + rho g / |g|, and the weights come back by copy: bit for bit, whatever happened between.
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;

 private:
  SamConfig config_;
};

}  // namespace huajin
