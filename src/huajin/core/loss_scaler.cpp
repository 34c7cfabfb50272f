#include "huajin/core/loss_scaler.h"

#include <algorithm>

#include "huajin/core/technique.h"

namespace huajin {

void LossScaler::update(bool found_inf) {
  if (!enabled_ || constant_) return;
  if (found_inf) {
    scale_ = std::max(scale_ / 2, kLeast);
    good_steps_ = 0;
  } else if (++good_steps_ >= kGrowAfter) {
    scale_ = std::min(scale_ * 2, kMost);
    good_steps_ = 0;
  }
}

void LossScaler::serialize(Archive& archive) {
  if (!enabled_ || constant_) return;
  auto good = static_cast<double>(good_steps_);
  archive.number("scale", scale_);
  archive.number("good_steps", good);
  good_steps_ = static_cast<int64_t>(good);
}

}  // namespace huajin
