// Penalty on the gradient's norm. Zhao, Zhang and Hu, "Penalizing Gradient Norm for Efficiently Improving Generalization in Deep Learning", ICML 2022 (arXiv
// 2202.03599), section 4: the gradient of L(w) + weight |grad L(w)| is grad L + weight H g / |g|, and the product with the Hessian is a difference:
//   (1 - a) grad L(w) + a grad L(w + r g / |g|),   a = weight / r
// SAM is a = 1. `balance` is a.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct GradientNormPenaltyConfig {
  double radius = 0.05, balance = 0.8;
  void fields(Fields& f) {
    f.number("radius", radius, {.least = 0, .open = true}, "distance over which the gradient's change is measured");
    f.number("balance", balance, {.least = 0, .most = 1}, "share of the gradient at that distance, which makes the penalty's weight balance x radius; 0: off, 1: SAM");
  }
};

class GradientNormPenalty : public Technique {
 public:
  explicit GradientNormPenalty(const GradientNormPenaltyConfig& config) : config_(config) {}
  std::string_view name() const override { return "gradient_norm_penalty"; }
  Needs needs() const override { return kSeveralPasses | kAllGradients | kMovesWeights; }
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;

 private:
  GradientNormPenaltyConfig config_;
};

}  // namespace huajin
