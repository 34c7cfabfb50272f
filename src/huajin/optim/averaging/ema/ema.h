// Exponential moving average of the weights, used for evaluation. Polyak & Juditsky, 1992; the exponential form with bias correction: Kingma & Ba,
// "Adam", ICLR 2015, section 7.2; the power-function form, whose window grows with the run: Karras et al., "Analyzing and Improving the Training
// Dynamics of Diffusion Models", arXiv 2312.02696, equations 121 to 127.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "huajin/optim/averaging/stand_in.h"

namespace huajin {

struct EmaConfig {
  double half_life = 0.02, decay = 0, sigma = 0;
  StandInConfig stand_in{0};
  void fields(Fields& f) {
    f.number("half_life", half_life, {.least = 0, .open = true}, "fraction of the budget after which a weight counts half; used if decay is 0");
    f.number("decay", decay, {.least = 0, .most = 1, .open_most = true}, "share of the average that each update keeps; 0: from half_life");
    f.number("sigma", sigma, {.least = 0, .most = 0.288}, "standard deviation of a power-function average, in lengths of the run so far; 0: an exponential one");
    stand_in.fields(f);
  }
};

// a <- a + (w - a) / total for every tensor, after total <- decay total + 1. From total = 0 this is the bias-corrected average: after t updates
// sum_i d^(t-i) w_i / sum_i d^(t-i), also if the decay changes on the way.
double ema_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double decay, double total);

// Update t = 1, 2, ...: a <- b a + (1 - b) w with b = (1 - 1/t)^(gamma+1) (eq. 127), so that w_i counts (i^(gamma+1) - (i-1)^(gamma+1)) / t^(gamma+1).
// No bias to correct: b = 0 at t = 1.
void power_ema_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double gamma, double t);
// gamma >= 0 for which (gamma+1)^(1/2) (gamma+2)^-1 (gamma+3)^(-1/2) = sigma (eq. 123); sigma in (0, 0.288].
double power_ema_exponent(double sigma);

class Ema : public Technique {
 public:
  explicit Ema(const EmaConfig& config);  // UserError: decay and sigma are both given
  std::string_view name() const override { return "ema"; }
  Needs needs() const override { return kMovesWeights; }
  void setup(Session& session) override { session.declare_slot("ema.average", SlotKind::kValue); }
  void after_step(Step& step) override;
  void evaluate(Session& session, FunctionRef<void()> next) override;
  void serialize(Archive& archive) override;

 private:
  EmaConfig config_;
  StandIn stand_in_;
  double gamma_ = 0;      // if sigma is given
  double total_ = 0;      // sum of the weights of all updates so far; their number if sigma is given
  double fraction_ = -1;  // of the budget at the last update; -1: none yet
};

}  // namespace huajin
