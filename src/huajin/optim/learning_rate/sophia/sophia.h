// Sophia-G: momentum over a running estimate of the Hessian's diagonal, clipped to the rate. The estimate comes from an extra pass every few steps
// with labels drawn from the model's own predictions. Liu et al., "Sophia: A Scalable Stochastic Second-order Optimizer for Language Model
// Pre-training", ICLR 2024 (arXiv 2305.14342), algorithms 2 (Gauss-Newton-Bartlett) and 3.
#pragma once
#include <ATen/core/Tensor.h>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct SophiaConfig {
  double learning_rate = 4e-4, beta1 = 0.96, beta2 = 0.99, gamma = 0.05, epsilon = 1e-12, weight_decay = 0.2;
  int64_t every = 10;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "how far a weight moves a step at most, before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of estimates of the Hessian's diagonal");
    f.number("gamma", gamma, {.least = 0, .open = true}, "the estimate is multiplied by it: larger, and fewer weights move by the whole rate");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "least divisor, where the estimate is zero");
    f.integer("every", every, {.least = 1}, "steps between two estimates; each costs a pass");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled: w shrinks by rate x weight_decay a step; matrices only");
  }
};

// One step; slots: m, h. h is updated elsewhere.
//   m <- b1 m + (1-b1) g;  w <- w - rate weight_decay w - rate clip(m / max(gamma h, epsilon), -1, 1)
void sophia_update(const ParameterLists& p, const SophiaConfig& c);

// [..., V] probabilities, [...] numbers in [0, 1) -> [...] int64: the class whose share of [0, 1) holds the number.
Tensor drawn_classes(const Tensor& probabilities, const Tensor& numbers);

class Sophia : public Technique {
 public:
  explicit Sophia(const SophiaConfig& config) : config_(config) {}
  std::string_view name() const override { return "sophia"; }
  Needs needs() const override { return kSeveralPasses | kWholeLogits; }
  void setup(Session& session) override;
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override;
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;
  void update(Step& step, FunctionRef<void()> next) override;

 private:
  SophiaConfig config_;
  uint64_t key_ = 0;      // of this step's labels
  bool drawing_ = false;  // the pass under way takes drawn labels
  Tensors estimates_;     // of this step, in the order of parameters(); empty: none
};

}  // namespace huajin
