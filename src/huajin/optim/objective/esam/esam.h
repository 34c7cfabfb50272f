// Efficient sharpness-aware minimisation. Du et al., "Efficient Sharpness-aware Minimization for Improved Training of Neural Networks", ICLR 2022 (arXiv
// 2110.03141). SAM with two savings:
//   weights (section 3.1)  a random share of the weights moves, further: e = m rho g / |g| / weights, m ~ Bernoulli(weights) for each element: e on average
//   data (section 3.2)     the second pass takes the share of the rows whose loss rises most from w to w + e
// Rows are compared by the mean loss of their tokens: at w it is that of the first pass, at w + e a forward pass of all rows. Which weights move is a function of
// (seed, draw, name, element).
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct EsamConfig {
  double rho = 0.05, weights = 0.6, data = 0.5;
  void fields(Fields& f) {
    f.number("rho", rho, {.least = 0}, "radius of the neighbourhood, in units of the weights; 0: off");
    f.number("weights", weights, {.least = 0, .most = 1, .open = true}, "share of the weights that move");
    f.number("data", data, {.least = 0, .most = 1, .open = true}, "share of the rows that take the second pass; 1: all, and no forward pass to choose them");
  }
};

// Rows of the `share` of groups (of so many neighbouring rows) with the largest sums of `rise` [B], in their order: [n] int64, at least one group.
Tensor esam_rows(const Tensor& rise, int64_t group, double share);
// The batch of these rows: every column cut alike.
Batch rows_of(const Batch& batch, const Tensor& rows);

class Esam : public Technique {
 public:
  explicit Esam(const EsamConfig& config) : config_(config) {}
  std::string_view name() const override { return "esam"; }
  Needs needs() const override;
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;

 private:
  EsamConfig config_;
};

}  // namespace huajin
