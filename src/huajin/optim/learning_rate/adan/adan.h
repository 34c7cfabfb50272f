// Adan: three means, of the gradient, of its change from step to step, and of the square of the gradient that looks ahead by it. Xie et al., "Adan:
// Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep Models", TPAMI 2024 (arXiv 2208.06677), algorithm 1 without restarts; betas are
// decays (the paper's are one minus them), and the means are corrected for their start at zero, as the authors' code does.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct AdanConfig {
  double learning_rate = 1e-3, beta1 = 0.98, beta2 = 0.92, beta3 = 0.99, epsilon = 1e-8, weight_decay = 0.02;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true},
             "decay of the mean of the gradient's changes, and how far to look ahead along it");
    f.number("beta3", beta3, {.least = 0, .most = 1, .open_most = true}, "decay of the mean square");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the second moment");
    f.number("weight_decay", weight_decay, {.least = 0}, "proximal: w is divided by 1 + rate x weight_decay each step; matrices only");
  }
};

// One step; slots: m, v, n, the gradient before. The change at step 1 is zero.
//   d = g - before;  m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) d;  n <- b3 n + (1-b3) (g + b2 d)^2
//   w <- (w - rate (m / (1-b1^step) + b2 v / (1-b2^step)) / (sqrt(n / (1-b3^step)) + epsilon)) / (1 + rate weight_decay)
void adan_update(const ParameterLists& p, const AdanConfig& c);

class Adan : public Technique {
 public:
  explicit Adan(const AdanConfig& config) : config_(config) {}
  std::string_view name() const override { return "adan"; }
  void setup(Session& session) override;

 private:
  AdanConfig config_;
};

}  // namespace huajin
