// AdamW. Loshchilov & Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2.
#pragma once
#include <ATen/core/Tensor.h>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct AdamwConfig {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared gradients");
    f.number("epsilon", epsilon, {.least = 0}, "added to the root of the second moment");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled: w shrinks by rate x weight_decay a step; matrices only");
  }
};

// One step; slots: m, v.
//   m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) g^2;  w <- w - rate weight_decay w - rate (m / (1-b1^step)) / (sqrt(v / (1-b2^step)) + epsilon)
void adamw_update(const ParameterLists& p, const AdamwConfig& c);

class AdamwOptimizer : public ListOptimizer {  // for techniques that leave some parameters to it
 public:
  AdamwOptimizer(Session& session, const AdamwConfig& config);
};

class Adamw : public Technique {
 public:
  explicit Adamw(const AdamwConfig& config) : config_(config) {}
  std::string_view name() const override { return "adamw"; }
  void setup(Session& session) override;

 private:
  AdamwConfig config_;
};

}  // namespace huajin
