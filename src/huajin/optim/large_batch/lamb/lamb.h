// LAMB: Adam's direction, made as long in each matrix as the matrix itself times the rate. You et al., "Large Batch Optimization for Deep Learning:
// Training BERT in 76 minutes", ICLR 2020 (arXiv 1904.00962), algorithm 2. Normalising the whole gradient first: NVIDIA's NVLAMB
// (developer.nvidia.com/blog/pretraining-bert-with-layer-wise-adaptive-learning-rates). A ratio of at most 1: timm's trust_clip.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct LambConfig {
  double learning_rate = 2e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0.01;
  bool normalize_gradient = false, bias_correction = true, trust_clip = false;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true},
             "change of a matrix in a step, as a share of its norm, before the schedule's factor");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared gradients");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the second moment");
    f.number("weight_decay", weight_decay, {.least = 0}, "added to the direction as weight_decay x w, before its norm is taken; matrices only");
    f.flag("normalize_gradient", normalize_gradient, "divide the gradient by its norm over all parameters, before the moments");
    f.flag("bias_correction", bias_correction, "correct both moments for their start at zero");
    f.flag("trust_clip", trust_clip, "the ratio of norms is at most 1");
  }
};

// Adam's direction; slots: m, v, which are updated.
//   m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) g^2;  d = (m / (1-b1^step)) / (sqrt(v / (1-b2^step)) + epsilon), matrices: + weight_decay w
Tensors lamb_direction(const ParameterLists& p, const Tensors& g, const LambConfig& c);
// One step over all parameters. Norms are of the logical tensors.
//   matrices:  w <- w - rate r d, r = |w| / |d|, 1 if either is 0;  others:  w <- w - rate d
void lamb_update(Session& session, const ParameterLists& p, const LambConfig& c);

class Lamb : public Technique {
 public:
  explicit Lamb(const LambConfig& config) : config_(config) {}
  std::string_view name() const override { return "lamb"; }
  Needs needs() const override { return kAllGradients; }
  void setup(Session& session) override;

 private:
  LambConfig config_;
};

}  // namespace huajin
