// LARS: gradient descent with momentum whose rate is set layer by layer, so that a step changes each matrix by the same share of its norm. You,
// Gitman & Ginsburg, "Large Batch Training of Convolutional Networks", arXiv 1708.03888, equation 6 and algorithm 1.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct LarsConfig {
  double learning_rate = 1, trust = 0.001, momentum = 0.9, weight_decay = 5e-4;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor");
    f.number("trust", trust, {.least = 0, .open = true}, "change of a matrix in a step, as a share of its norm, at rate 1");
    f.number("momentum", momentum, {.least = 0, .most = 1, .open_most = true}, "share of the velocity that is kept");
    f.number("weight_decay", weight_decay, {.least = 0}, "added to the gradient as weight_decay x w; matrices only");
  }
};

// One step over all parameters; slot: u. Norms are of the logical tensors.
//   matrices:  r = trust |w| / (|g| + weight_decay |w|), 1 if |w| or |g| is 0;  u <- momentum u + rate r (g + weight_decay w);  w <- w - u
//   others:    u <- momentum u + rate g;  w <- w - u
void lars_update(Session& session, const ParameterLists& p, const LarsConfig& c);

class Lars : public Technique {
 public:
  explicit Lars(const LarsConfig& config) : config_(config) {}
  std::string_view name() const override { return "lars"; }
  Needs needs() const override { return kAllGradients; }
  void setup(Session& session) override;

 private:
  LarsConfig config_;
};

}  // namespace huajin
