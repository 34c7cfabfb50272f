// NAdamW: AdamW with Nesterov's look ahead, as AlgoPerf's baselines have it: the gradient is mixed into the mean once more, with a constant beta1.
// Choi et al., "On Empirical Comparisons of Optimizers for Deep Learning", arXiv 1910.05446, table 1 (NAdam), with decoupled decay; after Dozat,
// "Incorporating Nesterov Momentum into Adam", ICLR workshop 2016, without his schedule of beta1 (which torch.optim.NAdam has).
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct NadamwConfig {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared gradients");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the second moment");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled: w shrinks by rate x weight_decay a step; matrices only");
  }
};

// One step; slots: m, v.
//   m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) g^2
//   w <- w - rate weight_decay w - rate ((b1 m + (1-b1) g) / (1-b1^step)) / (sqrt(v / (1-b2^step)) + epsilon)
void nadamw_update(const ParameterLists& p, const NadamwConfig& c);

class Nadamw : public Technique {
 public:
  explicit Nadamw(const NadamwConfig& config) : config_(config) {}
  std::string_view name() const override { return "nadamw"; }
  void setup(Session& session) override;

 private:
  NadamwConfig config_;
};

}  // namespace huajin
