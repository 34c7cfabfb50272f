// RMSProp: the gradient over the root of its mean square. Tieleman & Hinton, "Lecture 6.5: rmsprop", Coursera 2012; centred on the mean and with
// momentum: Graves, "Generating Sequences With Recurrent Neural Networks", arXiv 1308.0850, equations 38-41, with epsilon outside the root and the
// rate outside the velocity.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct RmspropConfig {
  double learning_rate = 1e-3, beta = 0.9, epsilon = 1e-8, momentum = 0, weight_decay = 0;
  bool centered = false;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("beta", beta, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared gradients");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the second moment");
    f.number("momentum", momentum, {.least = 0, .most = 1, .open_most = true}, "share of the velocity that is kept; 0: none");
    f.flag("centered", centered, "divide by the standard deviation instead of the root of the mean square");
    f.number("weight_decay", weight_decay, {.least = 0}, "added to the gradient as weight_decay x w; matrices only");
  }
};

// One step; slots: v, then the mean if centered, then u if momentum > 0. Both means start at zero and are not corrected.
//   d = g + weight_decay w;  v <- b v + (1-b) d^2;  mean <- b mean + (1-b) d;  s = centered ? v - mean^2 : v
//   u <- momentum u + d / (sqrt(s) + epsilon);  w <- w - rate u
void rmsprop_update(const ParameterLists& p, const RmspropConfig& c);

class Rmsprop : public Technique {
 public:
  explicit Rmsprop(const RmspropConfig& config) : config_(config) {}
  std::string_view name() const override { return "rmsprop"; }
  void setup(Session& session) override;

 private:
  RmspropConfig config_;
};

}  // namespace huajin
