// LookSAM. Liu et al., "Towards Efficient and Scalable Sharpness-Aware Minimization", CVPR 2022 (arXiv 2203.02714), algorithm 1. Each `every`-th step takes SAM's
// two passes, g at w and g_s at w + rho g / |g|; the optimizer gets g_s, and what of it is across g is kept:
//   g_v = g_s - |g_s| cos(g, g_s) g / |g|
// Steps between take one pass and get   g + alpha |g| g_v / |g_v|.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/objective/perturbation.h"

namespace huajin {

struct LooksamConfig {
  double rho = 0.05, alpha = 0.7;
  int64_t every = 5;
  void fields(Fields& f) {
    f.number("rho", rho, {.least = 0}, "radius of the neighbourhood, in units of the weights; 0: off");
    f.number("alpha", alpha, {.least = 0}, "length of the kept direction, in units of the gradient, in the steps between");
    f.integer("every", every, {.least = 1}, "each so many-th step takes the second pass; 1: SAM");
  }
};

class Looksam : public Technique {
 public:
  explicit Looksam(const LooksamConfig& config) : config_(config) {}
  std::string_view name() const override { return "looksam"; }
  Needs needs() const override { return kSeveralPasses | kAllGradients | kMovesWeights; }
  void setup(Session& session) override;
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;
  void update(Step& step, FunctionRef<void()> next) override;  // keeps g_v: only here is it sure that the step isn't skipped

 private:
  bool two_passes(Session& session, Pass pass, FunctionRef<bool(Pass)> next);
  void add_kept(Session& session);
  LooksamConfig config_;
  Directions across_;  // g_v of this step, not in effect yet
};

}  // namespace huajin
