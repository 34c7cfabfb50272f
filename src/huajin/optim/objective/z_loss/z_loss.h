// z-loss: coefficient x (log Z)^2 is added for each item, where Z is the sum over classes of exp(logit). Chowdhery et al., "PaLM: Scaling Language Modeling with
// Pathways", 2022 (arXiv 2204.02311), section 5 (training setup), which takes 1e-4. Its gradient with respect to a logit is 2 coefficient log Z p.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct ZLossConfig {
  double coefficient = 1e-4;
  void fields(Fields& f) { f.number("coefficient", coefficient, {.least = 0}, "factor of the squared logarithm of the softmax's denominator; 0: off"); }
};

// A term of its own, logged as loss.z: the data term and evaluations stay plain.
class ZLoss : public Technique {
 public:
  explicit ZLoss(const ZLossConfig& config) : config_(config) {}
  std::string_view name() const override { return "z_loss"; }
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override;

 private:
  ZLossConfig config_;
};

}  // namespace huajin
