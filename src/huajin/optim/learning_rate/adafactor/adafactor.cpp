#include "huajin/optim/learning_rate/adafactor/adafactor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/unbind.h>

#include <cmath>

#include "huajin/optim/large_batch/trust_ratio.h"

namespace huajin {
namespace {

bool is_factored(const Parameter& p) { return p.shape.size() >= 2; }

void take_in(Tensor& mean, const Tensor& x, double beta) {
  if (mean.defined())
    mean.lerp_(x, 1 - beta);
  else
    mean = x;
}

// 1 / sqrt(number of elements) of each parameter: what makes a norm a root mean square.
Tensor inverse_root_sizes(const ParameterLists& p, const Tensor& like) {
  std::vector<double> numbers;
  for (const Parameter* parameter : p.parameters) {
    double size = 1;
    for (const int64_t n : parameter->shape) size *= static_cast<double>(n);
    numbers.push_back(1 / std::sqrt(size));
  }
  return at::tensor(numbers, like.options());
}

}  // namespace

Tensor factored_direction(const Tensor& g, SecondMomentFactors& factors, double beta, double epsilon) {
  const Tensor square = g.square().add_(epsilon);
  take_in(factors.rows, square.mean(1), beta);
  take_in(factors.columns, square.mean(0), beta);
  // In this order no product leaves float32's range: each factor is near the root of one mean.
  return g * at::rsqrt(factors.rows / factors.rows.mean()).unsqueeze(1) * at::rsqrt(factors.columns).unsqueeze(0);
}

Tensors Adafactor::directions(const ParameterLists& p) {
  const double beta = 1 - std::pow(static_cast<double>(p.step), -config_.decay_exponent);
  Tensors made;
  for (size_t i = 0; i < p.g.size(); ++i) {
    const Parameter& parameter = *p.parameters[i];
    if (is_factored(parameter)) {
      const Tensor g = session_->whole(parameter, p.g[i]);
      const Tensor u = factored_direction(g.reshape({parameter.shape[0], -1}), factors_[parameter.name], beta, config_.epsilon);
      made.push_back(session_->cut(parameter, u.reshape(parameter.shape)));
    } else {
      Tensor& v = session_->slot("adafactor.v", parameter);
      v.lerp_(p.g[i].square().add_(config_.epsilon), 1 - beta);
      made.push_back(p.g[i] * at::rsqrt(v));
    }
  }
  return made;
}

void Adafactor::update(const ParameterLists& p) {
  const Tensors u = directions(p);
  const Tensor update_norms = norms_of(*session_, p, u);
  const Tensor roots = inverse_root_sizes(p, update_norms);
  Tensor scale = at::ones_like(update_norms);
  if (config_.clip > 0) scale = (config_.clip / (update_norms * roots)).clamp_max(1);
  if (config_.relative_step) scale = scale * (norms_of(*session_, p, p.w) * roots).clamp_min(config_.least_scale);
  at::_foreach_mul_(u, at::unbind(scale));
  add_decay(p, u, config_.weight_decay);
  at::_foreach_add_(p.w, u, -p.rate);
}

void Adafactor::setup(Session& session) {
  session_ = &session;
  session.declare_slot("adafactor.v", SlotKind::kSecondMoment);
  const auto update_all = [this](const ParameterLists& p) { update(p); };
  session.set_optimizer(std::make_unique<ListOptimizer>(session, config_.learning_rate, SlotNames{}, update_all, Reach::kAll));
}

void Adafactor::serialize(Archive& archive) {
  for (Parameter* p : session_->parameters()) {
    if (!is_factored(*p)) continue;
    SecondMomentFactors& factors = factors_[p->name];
    archive.tensor(p->name + ".rows", factors.rows);
    archive.tensor(p->name + ".columns", factors.columns);
  }
}

}  // namespace huajin
