// Lion: momentum of which only the sign is used, so every weight moves by the rate. Chen et al., "Symbolic Discovery of Optimization Algorithms",
// NeurIPS 2023 (arXiv 2302.06675), algorithm 2.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

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

// One step over lists of tensors of one type and device; m is updated in place:
//   c = b1 m + (1-b1) g;  w <- w - rate (sign(c) + weight_decay w);  m <- b2 m + (1-b2) g.  sign(0) = 0.
struct LionNumbers {
  double rate, beta1, beta2, weight_decay;
};
void lion_update(const std::vector<Tensor>& w, const std::vector<Tensor>& g, const std::vector<Tensor>& m, const LionNumbers& n);

class LionOptimizer : public Optimizer {
 public:
  LionOptimizer(Session& session, const LionConfig& config) : session_(session), config_(config) {}
  void begin(const Step& step, double rate_factor) override;
  void step(std::span<Parameter* const> parameters) override;
  double learning_rate() const override { return rate_; }

 private:
  Session& session_;
  LionConfig config_;
  double rate_ = 0;
};

class Lion : public Technique {
 public:
  explicit Lion(const LionConfig& config) : config_(config) {}
  std::string_view name() const override { return "lion"; }
  void setup(Session& session) override;

 private:
  LionConfig config_;
};

}  // namespace huajin
