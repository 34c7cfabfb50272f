// AdaBelief: Adam whose second moment is that of the gradient's distance from its mean. Zhuang et al., "AdaBelief Optimizer: Adapting Stepsizes by the Belief in Observed
// Gradients", NeurIPS 2020 (arXiv 2010.07468), algorithm 2, with decoupled decay.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct AdabeliefConfig {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-16, weight_decay = 0.01;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared distances from it");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the second moment at each step, and to its root");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled: w shrinks by rate x weight_decay a step; matrices only");
  }
};

// One step; slots: m, s.
//   m <- b1 m + (1-b1) g;  s <- b2 s + (1-b2) (g - m)^2 + epsilon
//   w <- w - rate weight_decay w - rate (m / (1-b1^step)) / (sqrt(s / (1-b2^step)) + epsilon)
void adabelief_update(const ParameterLists& p, const AdabeliefConfig& c);

class Adabelief : public Technique {
 public:
  explicit Adabelief(const AdabeliefConfig& config) : config_(config) {}
  std::string_view name() const override { return "adabelief"; }
  void setup(Session& session) override;

 private:
  AdabeliefConfig config_;
};

}  // namespace huajin
