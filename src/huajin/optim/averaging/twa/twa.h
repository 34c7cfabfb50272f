// Trainable weight averaging: snapshots are taken, and the end of the run trains only the coefficients of their weighted sum. Li et al., "Trainable
// Weight Averaging: Efficient Training by Optimizing Historical Solutions", ICLR 2023 (arXiv 2205.13104), algorithm 1.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct TwaConfig {
  double from = 0.6, start = 0.9, rate = 1;
  int64_t snapshots = 8;
  void fields(Fields& f) {
    f.number("from", from, {.least = 0, .most = 1, .open_most = true}, "fraction of the budget at which the first snapshot is taken");
    f.number("start", start, {.least = 0, .most = 1, .open = true}, "fraction at which the last is, and from which only coefficients are trained; 1: off");
    f.integer("snapshots", snapshots, {.least = 2, .most = 100}, "that span the space, each a copy of the weights in memory");
    f.number("rate", rate, {.least = 0, .open = true}, "factor on the optimizer's step within that space");
  }
};

using Snapshots = std::vector<std::vector<Tensor>>;  // [snapshot][parameter]

// All in float64. gram[i][j] = <w_i, w_j> over all parameters; its pseudo-inverse leaves out directions that rounding made up.
Tensor gram_inverse(const Snapshots& snapshots);
// Coefficients a of the projection of `step` onto the span of the snapshots: P P^T step = sum_i a_i w_i, a = G^+ W^T step.
Tensor span_coefficients(const Snapshots& snapshots, const Tensor& inverse, const std::vector<Tensor>& step);
// weights <- sum_i a_i w_i
void combine(const std::vector<Tensor>& weights, const Snapshots& snapshots, const Tensor& coefficients);

class Twa : public Technique {
 public:
  explicit Twa(const TwaConfig& config);  // UserError: from is not before start
  std::string_view name() const override { return "twa"; }
  Needs needs() const override { return kMovesWeights; }
  void setup(Session& session) override;
  void update(Step& step, FunctionRef<void()> next) override;
  void after_step(Step& step) override;
  void serialize(Archive& archive) override;

 private:
  std::string slot(int64_t i) const { return "twa.snapshot" + std::to_string(i); }
  Snapshots snapshots(Session& session) const;
  void begin(Session& session);

  TwaConfig config_;
  double count_ = 0;     // snapshots taken
  Tensor coefficients_;  // [snapshots] float64; undefined until only they are trained
  Tensor inverse_;       // of the Gram matrix: follows from the snapshots, made again after a resume or when the model has grown
  int64_t elements_ = 0;  // of the weights that it was made for
};

}  // namespace huajin
