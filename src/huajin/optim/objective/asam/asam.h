// Adaptive sharpness-aware minimisation. Kwon et al., "ASAM: Adaptive Sharpness-Aware Minimization for Scale-Invariant Learning of Deep Neural Networks", ICML
// 2021 (arXiv 2102.11600), section 4 and algorithm 1, with p = 2 and the element-wise normalisation:
//   e = rho T^2 g / |T g|,   T = diag(|w| + eta); biases: T = 1
// and the optimizer gets the gradient at w + e. With eta = 0 the loss there doesn't change when one layer is multiplied by what the next is divided by.
#pragma once
#include <string_view>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct AsamConfig {
  double rho = 0.5, eta = 0.01;
  int64_t every = 1;
  void fields(Fields& f) {
    f.number("rho", rho, {.least = 0}, "radius of the neighbourhood, relative to the weights: about ten times SAM's; 0: off");
    f.number("eta", eta, {.least = 0}, "added to the size of each weight, so that those at zero move too");
    f.integer("every", every, {.least = 1}, "only each so many-th step takes the second pass");
  }
};

// T g of one tensor, where T = |w| + eta. A bias: g.
Tensor asam_scaled(const Tensor& w, const Tensor& g, double eta, bool bias);

class Asam : public Technique {
 public:
  explicit Asam(const AsamConfig& config) : config_(config) {}
  std::string_view name() const override { return "asam"; }
  Needs needs() const override { return kSeveralPasses | kAllGradients | kMovesWeights; }
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;

 private:
  AsamConfig config_;
};

}  // namespace huajin
