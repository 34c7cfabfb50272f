// Mixup. Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018, section 2: x = m x_i + (1 - m) x_j, the same for the target, m ~
// Beta(alpha, alpha).
#pragma once
#include <cstdint>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct MixupConfig {
  double alpha = 0.2;
  void fields(Fields& f) { f.number("alpha", alpha, {.least = 0, .most = 1000}, "of the Beta(alpha, alpha) that m is drawn from; 0: off"); }
};

// A draw from Beta(alpha, alpha), alpha > 0: a pure function of the key. Two gammas (Marsaglia & Tsang, "A simple method for generating gamma
// variables", 2000) in logarithms, so that a small alpha gives zeros and ones and no 0 / 0.
double beta_variate(double alpha, uint64_t key);

// It edits the index: partners are ids, chosen by a permutation of the whole step's rows, so ranks and micro-batches cannot change them. Each row has
// its own m.
class Mixup : public Technique {
 public:
  explicit Mixup(const MixupConfig& config) : config_(config) {}
  std::string_view name() const override { return "mixup"; }
  void setup(Session& session) override;  // UserError if the data are tokens
  void on_batch(Step& step) override;

 private:
  MixupConfig config_;
};

}  // namespace huajin
