// Label smoothing. Szegedy et al., "Rethinking the Inception Architecture", CVPR 2016, section 7: the target is (1 - mass) one-hot + mass uniform.
#pragma once
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct LabelSmoothingConfig {
  double mass = 0.1;
  void fields(Fields& f) {
    f.number("mass", mass, {.least = 0, .most = 1, .open_most = true}, "share of the target that is spread over all classes");
  }
};

// Mass of uniform target when `mass` is applied to a target that already has `before`.
inline double smoothed(double before, double mass) { return 1 - (1 - before) * (1 - mass); }

// It edits the target in the index, so evaluation stays plain cross-entropy and mixed targets are smoothed as well.
class LabelSmoothing : public Technique {
 public:
  explicit LabelSmoothing(const LabelSmoothingConfig& config) : config_(config) {}
  std::string_view name() const override { return "label_smoothing"; }
  void on_batch(Step& step) override;

 private:
  LabelSmoothingConfig config_;
};

}  // namespace huajin
