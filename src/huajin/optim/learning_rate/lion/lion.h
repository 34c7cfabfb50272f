// Lion: momentum of which only the sign is used, so every weight moves by the rate. Chen et al., "Symbolic Discovery of Optimization Algorithms",
// NeurIPS 2023 (arXiv 2302.06675), algorithm 2.
#pragma once
#include <ATen/core/Tensor.h>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct LionConfig {
  double learning_rate = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 1;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "how far each weight moves a step, before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "share of the momentum in the direction of the step");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the momentum");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled: w shrinks by rate x weight_decay a step; matrices only");
  }
};

// One step; slot: m. sign(0) = 0.
//   c = b1 m + (1-b1) g;  w <- w - rate (sign(c) + weight_decay w);  m <- b2 m + (1-b2) g
void lion_update(const ParameterLists& p, const LionConfig& c);

class Lion : public Technique {
 public:
  explicit Lion(const LionConfig& config) : config_(config) {}
  std::string_view name() const override { return "lion"; }
  void setup(Session& session) override;

 private:
  LionConfig config_;
};

}  // namespace huajin
