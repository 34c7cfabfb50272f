// Exponential moving average of the weights, used for evaluation. Polyak & Juditsky, 1992; the exponential form with bias correction: Kingma & Ba,
// "Adam", ICLR 2015, section 7.2.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct EmaConfig {
  double half_life = 0.02, decay = 0;
  void fields(Fields& f) {
    f.number("half_life", half_life, {.least = 0, .open = true}, "fraction of the budget after which a weight counts half; used if decay is 0");
    f.number("decay", decay, {.least = 0, .most = 1, .open_most = true}, "share of the average that each update keeps; 0: from half_life");
  }
};

// a <- a + (w - a) / total for every tensor, after total <- decay total + 1. From total = 0 this is the bias-corrected average: after t updates
// sum_i d^(t-i) w_i / sum_i d^(t-i), also if the decay changes on the way.
double ema_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double decay, double total);

class Ema : public Technique {
 public:
  explicit Ema(const EmaConfig& config) : config_(config) {}
  std::string_view name() const override { return "ema"; }
  Needs needs() const override { return kMovesWeights; }
  void setup(Session& session) override { session.declare_slot("ema.average", SlotKind::kValue); }
  void after_step(Step& step) override;
  // The average stands in for the weights while next() runs. By copy, so that the weights come back bit for bit, also if next() throws.
  void evaluate(Session& session, FunctionRef<void()> next) override;
  void serialize(Archive& archive) override;

 private:
  EmaConfig config_;
  double total_ = 0;      // sum of the weights of all updates so far
  double fraction_ = -1;  // of the budget at the last update; -1: none yet
};

}  // namespace huajin
