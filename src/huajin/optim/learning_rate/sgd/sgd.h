// Stochastic gradient descent with heavy-ball or Nesterov momentum. Sutskever et al., "On the importance of initialization and momentum in deep
// learning", ICML 2013, equations 1-4, in the form where the rate multiplies the velocity (as every framework has it).
#pragma once
#include <ATen/core/Tensor.h>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct SgdConfig {
  double learning_rate = 0.1, momentum = 0.9, weight_decay = 5e-4;
  bool nesterov = true;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("momentum", momentum, {.least = 0, .most = 1, .open_most = true}, "share of the velocity that is kept; 0: plain gradient descent");
    f.flag("nesterov", nesterov, "look one step ahead along the velocity");
    f.number("weight_decay", weight_decay, {.least = 0}, "added to the gradient as weight_decay x w; matrices only");
  }
};

// One step; slot: u, none if momentum is 0.
//   d = g + weight_decay w;  u <- momentum u + d;  w <- w - rate (nesterov ? d + momentum u : u)
void sgd_update(const ParameterLists& p, const SgdConfig& c);

class Sgd : public Technique {
 public:
  explicit Sgd(const SgdConfig& config) : config_(config) {}
  std::string_view name() const override { return "sgd"; }
  void setup(Session& session) override;

 private:
  SgdConfig config_;
};

}  // namespace huajin
