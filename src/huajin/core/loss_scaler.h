// Loss scaling for float16 gradients: the loss is multiplied before the backward pass, so that small gradients don't round to zero, and gradients are
// divided after they have been reduced. Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2. The engine multiplies, checks and divides;
// this class only decides the factor: dynamic by default, or one that never changes.
#pragma once
#include <cstdint>

namespace huajin {
class Archive;

class LossScaler {
 public:
  static constexpr double kFirst = 65536;   // 2^16
  static constexpr double kMost = 0x1p24;   // beyond it only gradients under 1e-15 gain
  static constexpr double kLeast = 0x1p-14;
  static constexpr int64_t kGrowAfter = 2000;  // updates without an overflow

  // `constant`: this scale throughout, a power of two; 0: dynamic.
  explicit LossScaler(bool enabled, double constant = 0) : enabled_(enabled), constant_(constant > 0), scale_(!enabled ? 1 : constant > 0 ? constant : kFirst) {}
  bool enabled() const { return enabled_; }
  double scale() const { return scale_; }  // a power of two, so that multiplying and dividing are exact; 1 if not enabled
  int64_t good_steps() const { return good_steps_; }

  // After each pass whose gradient would reach the optimizer. Overflow: half the scale, count anew. kGrowAfter good ones in a row: double it.
  void update(bool found_inf);
  // Scale and count, so that a resumed run goes on as the uninterrupted one. Nothing if not enabled or constant.
  void serialize(Archive& archive);

 private:
  bool enabled_, constant_;
  double scale_;
  int64_t good_steps_ = 0;
};

}  // namespace huajin
