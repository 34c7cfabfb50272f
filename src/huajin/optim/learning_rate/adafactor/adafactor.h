// Adafactor: Adam's second moment kept as its row and column means, so that a matrix of n x m needs n + m numbers of state; no first moment. Shazeer
// & Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", ICML 2018 (arXiv 1804.04235), algorithms 4 and 5 (with means instead of
// sums: their quotient is the same).
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct AdafactorConfig {
  double learning_rate = 0.01, decay_exponent = 0.8, clip = 1, epsilon = 1e-30, least_scale = 1e-3, weight_decay = 0;
  bool relative_step = true;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true},
             "step size before the schedule's factor; with relative_step a share of the weights' root mean square");
    f.number("decay_exponent", decay_exponent, {.least = 0, .most = 1, .open = true}, "the second moment's decay at step t is 1 - t^-decay_exponent");
    f.number("clip", clip, {.least = 0}, "largest root mean square of a tensor's update, before the rate; 0: none");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the squared gradient");
    f.flag("relative_step", relative_step, "multiply the rate by the root mean square of the tensor's weights");
    f.number("least_scale", least_scale, {.least = 0, .open = true}, "relative_step multiplies by at least this, so that weights can leave zero");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled: w shrinks by rate x weight_decay a step, before relative_step; matrices only");
  }
};

struct SecondMomentFactors {
  Tensor rows, columns;  // [n], [m]: means of the squared gradient over the other dimension; undefined before the first step
};
// g [n, m] -> g / sqrt(v) with v = rows columns^T / mean(rows), after rows and columns have taken g^2 + epsilon in with share 1 - beta (the first
// time: whole).
Tensor factored_direction(const Tensor& g, SecondMomentFactors& factors, double beta, double epsilon);

// One step over all parameters; slot: v of what has one dimension. Tensors of more than two dimensions count as [first, rest].
//   b = 1 - step^-decay_exponent;  u = g / sqrt(v);  u <- u / max(1, rms(u) / clip)
//   w <- w - rate weight_decay w - rate s u,  s = relative_step ? max(least_scale, rms(w)) : 1
class Adafactor : public Technique {
 public:
  explicit Adafactor(const AdafactorConfig& config) : config_(config) {}
  std::string_view name() const override { return "adafactor"; }
  Needs needs() const override { return kWholeMatrices | kAllGradients; }
  void setup(Session& session) override;
  void serialize(Archive& archive) override;

 private:
  void update(const ParameterLists& p);
  Tensors directions(const ParameterLists& p);
  AdafactorConfig config_;
  Session* session_ = nullptr;
  std::map<std::string, SecondMomentFactors, std::less<>> factors_;  // by parameter
};

}  // namespace huajin
