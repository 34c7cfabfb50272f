// Muon: momentum, then the update of each hidden matrix is made nearly orthogonal by five Newton-Schulz steps; AdamW for all else. Jordan et al.,
// "Muon: An optimizer for hidden layers in neural networks" (kellerjordan.github.io/posts/muon, 2024); update-RMS matching: Liu et al., arXiv
// 2502.16982, equation 4.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/learning_rate/adamw/adamw.h"

namespace huajin {

struct MuonConfig {
  double learning_rate = 0.02, momentum = 0.95, weight_decay = 0;
  bool nesterov = true;
  int64_t newton_schulz_steps = 5;
  std::string scale = "spectral";
  double adamw_learning_rate = 3e-3, adamw_beta1 = 0.8, adamw_beta2 = 0.95, adamw_epsilon = 1e-10, adamw_weight_decay = 0;
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true},
             "step size of hidden matrices before the schedule's factor, in units of spectral norm");
    f.number("momentum", momentum, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of gradients of hidden matrices");
    f.flag("nesterov", nesterov, "mix the mean with the gradient once more");
    f.integer("newton_schulz_steps", newton_schulz_steps, {.least = 1, .most = 20}, "iterations of the orthogonalisation");
    f.text("scale", scale, {"spectral", "rms"}, "spectral: sqrt(max(1, rows / cols)); rms: 0.2 sqrt(max(rows, cols)), for AdamW's rates");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled decay of hidden matrices");
    f.number("adamw_learning_rate", adamw_learning_rate, {.least = 0, .open = true}, "step size of embeddings, head, norms and biases");
    f.number("adamw_beta1", adamw_beta1, {.least = 0, .most = 1, .open_most = true}, "as adamw.beta1");
    f.number("adamw_beta2", adamw_beta2, {.least = 0, .most = 1, .open_most = true}, "as adamw.beta2");
    f.number("adamw_epsilon", adamw_epsilon, {.least = 0}, "as adamw.epsilon");
    f.number("adamw_weight_decay", adamw_weight_decay, {.least = 0}, "as adamw.weight_decay");
  }
};

// [k, m, n] -> the same shape; each matrix U S V^T becomes U S' V^T with S' in about [0.65, 1.2], whatever its scale. Floating point of any width.
Tensor orthogonalize(const Tensor& matrices, int64_t steps);
double muon_scale(const std::string& rule, int64_t rows, int64_t cols);

class MuonOptimizer : public Optimizer {
 public:
  MuonOptimizer(Session& session, const MuonConfig& config);
  void begin(const Step& step, double rate_factor) override;
  void step(std::span<Parameter* const> parameters) override;
  double learning_rate() const override { return rate_; }  // of the hidden matrices

 private:
  void step_matrices(std::span<Parameter* const> matrices);
  Session& session_;
  MuonConfig config_;
  AdamwOptimizer rest_;
  double rate_ = 0;
};

class Muon : public Technique {
 public:
  explicit Muon(const MuonConfig& config) : config_(config) {}
  std::string_view name() const override { return "muon"; }
  Needs needs() const override { return kWholeMatrices; }
  void setup(Session& session) override;
  void start(Session& session) override;  // UserError if the model has no hidden matrix

 private:
  MuonConfig config_;
};

}  // namespace huajin
