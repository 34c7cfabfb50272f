// What layer-wise optimizers share: one number a tensor that sets the step's size by the weight's.
#pragma once
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

// [tensors of `p`]: Euclidean norms of `x`, which runs parallel to p.w; logical norms, however the tensors are cut. Collective.
Tensor norms_of(Session& session, const ParameterLists& p, const Tensors& x);

// numerator / denominator; 1 where either is zero: a tensor that starts at zero must be able to leave it.
Tensor ratio_or_one(const Tensor& numerator, const Tensor& denominator);

// x[i] <- ratios[i] x[i] for tensors that decay. Norms, biases and positions keep the plain step.
void scale_layers(const ParameterLists& p, const Tensors& x, const Tensor& ratios);
// x[i] <- x[i] + weight_decay w[i] for tensors that decay.
void add_decay(const ParameterLists& p, const Tensors& x, double weight_decay);

}  // namespace huajin
