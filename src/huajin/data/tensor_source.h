// Examples that a program has in memory: one row an example, one label a row.
#pragma once
#include "huajin/core/source.h"

namespace huajin {

class TensorSource : public Source {
 public:
  // inputs [N, ...] of any type, labels [N] int64 in [0, classes). UserError where they don't fit together.
  TensorSource(Tensor inputs, Tensor labels, int64_t classes);
  bool classifies() const override { return true; }
  int64_t size() const override { return inputs_.size(0); }
  int64_t classes() const override { return classes_; }
  int64_t units_per_row(int64_t) const override { return 1; }
  Tensor ids(uint64_t seed, int64_t at, int64_t rows, int64_t length) const override;  // an epoch is a permutation of all
  Examples load(const Tensor& ids, int64_t length, const Tensor& noise, int64_t draw, bool training) const override;

 private:
  Tensor inputs_, labels_;
  int64_t classes_;
};

// The same as a validation split: every row once, in order.
class TensorEvaluation : public EvaluationSet {
 public:
  TensorEvaluation(Tensor inputs, Tensor labels, int64_t rows = 256);
  int64_t batches() const override { return (inputs_.size(0) + rows_ - 1) / rows_; }
  Examples batch(int64_t i) const override;

 private:
  Tensor inputs_, labels_;
  int64_t rows_;
};

}  // namespace huajin
