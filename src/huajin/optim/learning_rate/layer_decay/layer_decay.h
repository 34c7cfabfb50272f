// Layer-wise decay of the rate: a block that is n blocks below the head moves decay^n as far. Clark et al., "ELECTRA", ICLR 2020, appendix; Bao et al.,
// "BEiT", arXiv 2106.08254. Any optimizer: the rate is a factor of its whole step (and of its decoupled decay), so the step is shortened after
// it was made.
#pragma once
#include <vector>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct LayerDecayConfig {
  double decay = 0.75;
  void fields(Fields& f) {
    f.number("decay", decay, {.least = 0, .most = 1, .open = true}, "rate of a block over that of the block above it; the head has 1. 1: off");
  }
};

// decay^(L - l) for each weight of the table (Model::number()), l: the last block that uses it (a tied embedding learns as fast as the head), L: the
// last block that has weights.
std::vector<double> layer_rates(const std::vector<Model::Entry>& table, double decay);
// value <- before + rate (value - before)
void shorten_step(Tensor value, const Tensor& before, double rate);

class LayerDecay : public Technique {
 public:
  explicit LayerDecay(const LayerDecayConfig& config) : config_(config) {}
  std::string_view name() const override { return "layer_decay"; }
  Needs needs() const override { return kMovesWeights; }
  void update(Step& step, FunctionRef<void()> next) override;

 private:
  LayerDecayConfig config_;
};

}  // namespace huajin
