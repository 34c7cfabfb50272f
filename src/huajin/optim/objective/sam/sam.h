// LEAD, 11:18: asam, gsam, look_sam, gradient_penalty, z_loss and spike are ALREADY WRITTEN by the lead (see /work/tmp/lead/clone/src/huajin/optim/objective and system/optimization/spike). Do not write them. Do in this order: distillation, logit soft-cap, stochastic rounding for bf16 weights, multi-token prediction, ESAM. A technique can skip a step: gradients() returns false with step.why_skipped set (new in the lead's core/technique.h).
// Sharpness-aware minimisation. Foret et al., "Sharpness-Aware Minimization for Efficiently Improving Generalization", ICLR 2021, equations 2 and 3
// (p = 2).
#pragma once
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
