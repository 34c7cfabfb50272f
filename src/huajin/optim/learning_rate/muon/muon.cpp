#include "huajin/optim/learning_rate/muon/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

// X <- a X + b (X X^T) X + c (X X^T)^2 X: steepest at zero among the quintics that stay near one.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

Tensor plain_iteration(Tensor x, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor gram = at::bmm(x, x.mT());
    const Tensor polynomial = at::baddbmm(gram, gram, gram, kB, kC);
    x = at::baddbmm(x, polynomial, x, kA, 1);
  }
  return x;
}

// The same iteration on the small Gram matrix: each step multiplies x from the left by a polynomial of it, so their product is applied once. For n
// > 1.5 m this takes fewer operations: 4 m^2 n + 34 m^3 instead of 20 m^2 n + 10 m^3 for five steps.
Tensor gram_iteration(const Tensor& x, int64_t steps) {
  const Tensor one = at::eye(x.size(1), x.options()).expand({x.size(0), x.size(1), x.size(1)});
  Tensor gram = at::bmm(x, x.mT()), product;
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor p = at::baddbmm(gram, gram, gram, kB, kC).add_(one, kA);
    product = product.defined() ? at::bmm(p, product) : p;
    if (i + 1 < steps) gram = at::bmm(at::bmm(p, gram), p);
  }
  return at::bmm(product, x);
}

// Small matrices of one shape share a call; of large ones only so many that copies stay small.
constexpr int64_t kMostElementsACall = 1 << 22;

Tensor flat(const Tensor& t) { return t.dim() == 2 ? t : t.flatten(1); }  // kernels of convolutions: [out, rest]

}  // namespace

Tensor orthogonalize(const Tensor& matrices, int64_t steps) {
  const bool tall = matrices.size(1) > matrices.size(2);
  Tensor x = tall ? matrices.mT().contiguous() : matrices;
  x = x / (at::linalg_vector_norm(x, 2, {1, 2}, true) + 1e-7);  // the spectral norm is then at most one
  x = 2 * x.size(2) > 3 * x.size(1) && steps > 1 ? gram_iteration(x, steps) : plain_iteration(x, steps);
  return tall ? x.mT() : x;
}

double muon_scale(const std::string& rule, int64_t rows, int64_t cols) {
  if (rule == "rms") return 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols)));
  return std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(cols)));
}

MuonOptimizer::MuonOptimizer(Session& session, const MuonConfig& c)
    : session_(session), config_(c), rest_(session, {c.adamw_learning_rate, c.adamw_beta1, c.adamw_beta2, c.adamw_epsilon, c.adamw_weight_decay}) {}

void MuonOptimizer::begin(const Step& step, double rate_factor) {
  rate_ = config_.learning_rate * rate_factor;
  rest_.begin(step, rate_factor);
}

void MuonOptimizer::step(std::span<Parameter* const> parameters) {
  std::map<std::pair<int64_t, int64_t>, std::vector<Parameter*>> by_shape;
  std::vector<Parameter*> rest;
  for (Parameter* p : parameters) {
    if (!p->hidden_matrix)
      rest.push_back(p);
    else
      by_shape[{p->shape[0], p->value.numel() / p->shape[0]}].push_back(p);
  }
  for (auto& [shape, matrices] : by_shape) {
    const size_t many = static_cast<size_t>(std::max<int64_t>(1, kMostElementsACall / (shape.first * shape.second)));
    for (size_t at = 0; at < matrices.size(); at += many) step_matrices(std::span(matrices).subspan(at, std::min(many, matrices.size() - at)));
  }
  rest_.step(rest);
}

void MuonOptimizer::step_matrices(std::span<Parameter* const> matrices) {
  std::vector<Tensor> updates;
  for (Parameter* p : matrices) {
    Tensor& mean = session_.slot("muon.momentum", *p);
    const Tensor g = gradient_or_zeros(*p);
    mean.lerp_(g, 1 - config_.momentum);
    updates.push_back(flat(session_.whole(*p, config_.nesterov ? at::lerp(g, mean, config_.momentum) : mean)));
  }
  const Tensor made = orthogonalize(at::stack(updates), config_.newton_schulz_steps);
  const double factor = -rate_ * muon_scale(config_.scale, made.size(1), made.size(2));
  for (size_t i = 0; i < matrices.size(); ++i) {
    Parameter& p = *matrices[i];
    if (config_.weight_decay > 0 && p.decay) p.value.mul_(1 - rate_ * config_.weight_decay);
    p.value.add_(session_.cut(p, made.select(0, static_cast<int64_t>(i)).reshape(p.shape)), factor);
  }
}

void Muon::setup(Session& session) {
  session.declare_slot("muon.momentum", SlotKind::kGradient);
  session.set_optimizer(std::make_unique<MuonOptimizer>(session, config_));
}

void Muon::start(Session& session) {
  for (Parameter* p : session.parameters())
    if (p->hidden_matrix) return;
  throw UserError("optimizer.name=\"muon\": the model has no hidden matrix to act on; use \"adamw\"");
}

}  // namespace huajin
