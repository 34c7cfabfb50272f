// Surrogate-gap-guided sharpness-aware minimisation. Zhuang et al., "Surrogate Gap Minimization Improves Sharpness-Aware Training", ICLR 2022 (arXiv
// 2203.08065), algorithm 1. g is the gradient at w, g_p that at w + rho g / |g|; the optimizer gets
//   g_p - alpha g_v,   g_v = g - <g, g_p> g_p / |g_p|^2
// so it descends the perturbed loss and, at right angles to that, ascends the loss: their difference, the surrogate gap, shrinks.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct GsamConfig {
  double rho = 0.05, final_rho = 0.05, alpha = 0.1;
  void fields(Fields& f) {
    f.number("rho", rho, {.least = 0}, "radius of the neighbourhood when the run begins; 0, with final_rho = 0: off");
    f.number("final_rho", final_rho, {.least = 0}, "radius at the budget's end; linear in what is spent between, as the paper lets it follow the learning rate");
    f.number("alpha", alpha, {.least = 0}, "of the part of the gradient across the perturbed one, subtracted; 0: SAM");
  }
};

class Gsam : public Technique {
 public:
  explicit Gsam(const GsamConfig& config) : config_(config) {}
  std::string_view name() const override { return "gsam"; }
  Needs needs() const override { return kSeveralPasses | kAllGradients | kMovesWeights; }
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;

 private:
  GsamConfig config_;
};

}  // namespace huajin
