// For tests of what takes gradients elsewhere: F(w) = w^T H w / 2 in two parts of a bare session, so that norms must be taken over both.
#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "conformance/bare_session.h"
#include "huajin/core/keyed.h"

namespace huajin {

struct Quadratic {
  Tensor h;             // [5, 5], positive
  BareSession session;  // "a.weight" [3], "b.bias" [2]
  std::vector<Pass> passes;

  explicit Quadratic(at::ScalarType dtype = at::kDouble) {
    Tensor a = at::empty({5, 5}, at::kDouble);
    fill_normal(a, 3, 1);
    h = a.matmul(a.t()).to(dtype);
    session.add("a.weight", (at::arange(3, at::kDouble) - 1.5).to(dtype));
    session.add("b.bias", (at::arange(2, at::kDouble) + 1).to(dtype));
  }
  Tensor w() { return at::cat({session.parameters()[0]->value, session.parameters()[1]->value}); }
  Tensor grad() { return at::cat({session.parameters()[0]->grad, session.parameters()[1]->grad}); }
  // What the engine does: tensors of their own each pass.
  bool engine(Pass pass) {
    passes.push_back(pass);
    const Tensor g = h.matmul(w());
    session.parameters()[0]->grad = g.slice(0, 0, 3).clone();
    session.parameters()[1]->grad = g.slice(0, 3, 5).clone();
    return true;
  }
  // The gradient that the technique leaves for the optimizer in this step.
  Tensor gradient_of(Technique& technique, Progress progress = {}) {
    passes.clear();
    Step step = session.step(progress);
    technique.gradients(step, {}, [&](Pass pass) { return engine(pass); });
    return grad();
  }
};

inline double farthest(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item().toDouble(); }

}  // namespace huajin
