// Adam. Kingma & Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1, with the decay as a penalty in the gradient. AMSGrad:
// Reddi et al., "On the Convergence of Adam and Beyond", ICLR 2018, algorithm 2, with Adam's bias corrections, as every framework has it.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct AdamConfig {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool amsgrad = false;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared gradients");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the second moment");
    f.number("weight_decay", weight_decay, {.least = 0}, "added to the gradient as weight_decay x w; matrices only");
    f.flag("amsgrad", amsgrad, "divide by the largest second moment so far: a weight's rate never grows back");
  }
};

// One step; slots: m, v, and with amsgrad the largest v so far (else x = v).
//   d = g + weight_decay w;  m <- b1 m + (1-b1) d;  v <- b2 v + (1-b2) d^2;  x <- max(x, v)
//   w <- w - rate (m / (1-b1^step)) / (sqrt(x / (1-b2^step)) + epsilon)
void adam_update(const ParameterLists& p, const AdamConfig& c);

class Adam : public Technique {
 public:
  explicit Adam(const AdamConfig& config) : config_(config) {}
  std::string_view name() const override { return "adam"; }
  void setup(Session& session) override;

 private:
  AdamConfig config_;
};

}  // namespace huajin
