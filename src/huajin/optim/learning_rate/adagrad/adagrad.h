// Adagrad: the gradient over the root of the sum of all squared gradients. Duchi, Hazan & Singer, "Adaptive Subgradient Methods for Online Learning
// and Stochastic Optimization", JMLR 12, 2011, figure 1 with the diagonal matrix.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct AdagradConfig {
  double learning_rate = 1e-2, epsilon = 1e-10, initial_sum = 0, weight_decay = 0;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the sum");
    f.number("initial_sum", initial_sum, {.least = 0}, "what the sum of squared gradients starts from; 0.1 damps the first steps");
    f.number("weight_decay", weight_decay, {.least = 0}, "added to the gradient as weight_decay x w; matrices only");
  }
};

// One step; slot: s, which leaves the initial sum out.
//   d = g + weight_decay w;  s <- s + d^2;  w <- w - rate d / (sqrt(s + initial_sum) + epsilon)
void adagrad_update(const ParameterLists& p, const AdagradConfig& c);

class Adagrad : public Technique {
 public:
  explicit Adagrad(const AdagradConfig& config) : config_(config) {}
  std::string_view name() const override { return "adagrad"; }
  void setup(Session& session) override;

 private:
  AdagradConfig config_;
};

}  // namespace huajin
