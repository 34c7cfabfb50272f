// Stochastic weight averaging: the equal average of the weights over the last part of the run. Izmailov et al., "Averaging Weights Leads to Wider
// Optima and Better Generalization", UAI 2018 (arXiv 1803.05407), algorithm 1. With start = 0 and every = 1 it is Polyak-Ruppert averaging: Polyak &
// Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.
#pragma once
#include <vector>

#include "huajin/optim/averaging/stand_in.h"

namespace huajin {

struct SwaConfig {
  double start = 0.75;
  int64_t every = 1;
  StandInConfig stand_in{16};
  void fields(Fields& f) {
    f.number("start", start, {.least = 0, .most = 1}, "fraction of the budget after which weights count; 0: all of them (Polyak); 1: off");
    f.integer("every", every, {.least = 1}, "updates between two that count; the cycle's length with a cyclic rate");
    stand_in.fields(f);
  }
};

// a <- a + (w - a) / n for every tensor: after n = 1, 2, ... the mean of n weights.
void mean_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double n);

class Swa : public Technique {
 public:
  explicit Swa(const SwaConfig& config) : config_(config), stand_in_(config.stand_in) {}
  std::string_view name() const override { return "swa"; }
  Needs needs() const override { return kMovesWeights; }
  void setup(Session& session) override { session.declare_slot("swa.average", SlotKind::kValue); }
  void after_step(Step& step) override;
  void evaluate(Session& session, FunctionRef<void()> next) override;
  void serialize(Archive& archive) override;

 private:
  SwaConfig config_;
  StandIn stand_in_;
  double count_ = 0;  // of weights in the average
};

}  // namespace huajin
