// Soft cap on the logits: cap tanh(logit / cap), so none is beyond +-cap. Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024 (arXiv
// 2408.00118), section 2, which takes 30 for the final logits. The derivative is 1 - (capped / cap)^2.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct SoftCapConfig {
  double cap = 30;
  void fields(Fields& f) { f.number("cap", cap, {.least = 0}, "bound of the size of a logit; 0: off"); }
};

// float32 or wider.
Tensor soft_capped(const Tensor& logits, double cap);

// Around the head, so it is part of the model: evaluations and generation have it as well. config.json says so by Gemma 2's key, final_logit_softcapping.
class SoftCap : public Technique {
 public:
  explicit SoftCap(const SoftCapConfig& config) : config_(config) {}
  std::string_view name() const override { return "soft_cap"; }
  void setup(Session& session) override;

 private:
  SoftCapConfig config_;
};

}  // namespace huajin
