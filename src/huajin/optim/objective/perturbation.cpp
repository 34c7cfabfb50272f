#include "huajin/optim/objective/perturbation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <map>

namespace huajin {
namespace {

// session.norms() with the position of each parameter.
Tensor norm_by_position(Session& session, FunctionRef<Tensor(size_t)> tensor) {
  std::map<int, size_t> position;
  const auto parameters = session.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) position[parameters[i]->index] = i;
  const auto slice = [&](const Parameter& p) {
    const Tensor found = tensor(position.at(p.index));
    return found.defined() ? found : at::zeros_like(p.value);
  };
  return session.norms(slice).to(at::kDouble).norm();
}

}  // namespace

Directions gradients_of(Session& session) {
  Directions g;
  for (Parameter* p : session.parameters()) g.push_back(p->grad);
  return g;
}

Tensor norm_of(Session& session, const Directions& a) {
  at::NoGradGuard off;
  return norm_by_position(session, [&](size_t i) { return a[i]; });
}

Tensor cosine(Session& session, const Directions& a, const Tensor& a_norm, const Directions& b, const Tensor& b_norm) {
  at::NoGradGuard off;
  const Tensor apart = norm_by_position(session, [&](size_t i) {
    if (!a[i].defined() && !b[i].defined()) return Tensor();
    const auto unit = [](const Tensor& t, const Tensor& norm) { return t / (norm + 1e-30).to(t.scalar_type()); };
    if (!a[i].defined()) return unit(b[i], b_norm);
    if (!b[i].defined()) return unit(a[i], a_norm);
    return unit(a[i], a_norm) - unit(b[i], b_norm);
  });
  return 1 - apart.square() / 2;
}

void climb(const std::vector<Tensor>& w, const std::vector<Tensor>& d, const Tensor& norm, double rho) {
  const Tensor factor = rho / (norm + 1e-12);
  for (size_t i = 0; i < w.size(); ++i) w[i].addcmul_(d[i], factor.to(w[i].scalar_type()).squeeze());
}

Climb::Climb(Session& session, Directions along, const Tensor& norm, double rho) {
  at::NoGradGuard off;
  std::vector<Tensor> w, d;
  const auto parameters = session.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!along[i].defined()) continue;
    back_.keep(parameters[i]->value);
    w.push_back(parameters[i]->value);
    d.push_back(along[i]);
  }
  climb(w, d, norm, rho);
}

}  // namespace huajin
