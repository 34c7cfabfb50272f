// What the sharpness-aware techniques share: the gradients that a pass left, a climb along a direction that is taken back by copy, and the angle between
// two gradients. Norms and angles are over all parameters and the same on every rank.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "huajin/core/put_back.h"
#include "huajin/core/technique.h"

namespace huajin {

// One tensor for each of session.parameters(), in that order; undefined: zero.
using Directions = std::vector<Tensor>;

// Of the latest pass, without a copy: the next pass makes tensors of its own.
Directions gradients_of(Session& session);
// [] float64, on the device.
Tensor norm_of(Session& session, const Directions& a);
// [] float64, of the angle between a and b, from the distance of their unit vectors: 1 - |a/|a| - b/|b||^2 / 2 keeps its digits where the angle is small, as it
// is between the gradients at a point and near it. A zero vector: 1/2.
Tensor cosine(Session& session, const Directions& a, const Tensor& a_norm, const Directions& b, const Tensor& b_norm);

// w <- w + rho d / (norm + 1e-12) for every tensor; `norm` has one element, on the device.
void climb(const std::vector<Tensor>& w, const std::vector<Tensor>& d, const Tensor& norm, double rho);

// While it lives, weights are rho along / norm further: steepest ascent if `along` is the gradient. Then they are as they were, bit for bit, also if a pass
// between was not finite. Takes a copy of the weights that move.
class Climb {
 public:
  Climb(Session& session, Directions along, const Tensor& norm, double rho);

 private:
  PutBack back_;
};

}  // namespace huajin
