// RAdam: Adam that starts as gradient descent with momentum and takes in the second moment as its variance falls. Liu et al., "On the Variance of the
// Adaptive Learning Rate and Beyond", ICLR 2020 (arXiv 1908.03265), algorithm 2, with decoupled decay.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct RadamConfig {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared gradients");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the second moment");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled: w shrinks by rate x weight_decay a step; matrices only");
  }
};

// r of step 1, 2, ...: sqrt((rho-4) (rho-2) rho_max / ((rho_max-4) (rho_max-2) rho)) with rho_max = 2 / (1-b2) - 1, rho = rho_max - 2 step b2^step /
// (1 - b2^step), the number of gradients that v averages. 0: rho is 4 or less, the variance of 1 / sqrt(v) is not finite.
double rectification(double beta2, int64_t step);

// One step; slots: m, v.
//   m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) g^2;  u = m / (1-b1^step)
//   w <- w - rate weight_decay w - rate (r > 0 ? r u / (sqrt(v / (1-b2^step)) + epsilon) : u)
void radam_update(const ParameterLists& p, const RadamConfig& c);

class Radam : public Technique {
 public:
  explicit Radam(const RadamConfig& config) : config_(config) {}
  std::string_view name() const override { return "radam"; }
  void setup(Session& session) override;

 private:
  RadamConfig config_;
};

}  // namespace huajin
