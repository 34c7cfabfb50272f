// What may be spent, and how much of it is gone. `10m`, `2h`, `90s`, `500step`, `50Mtok`, `10ksample`, `3epoch`, `1e15flop`; several, separated by commas
// or +: the nearest counts. Steps, seconds and FLOPs end with the step that reaches them; of samples, tokens and epochs the last step takes the rows that are left. Numbers may carry k, M, G. Budgeted training as a function of t/T: Li et al., "Budgeted Training", ICLR 2020.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "huajin/core/technique.h"

namespace huajin {

struct Limits {  // infinity: no limit of that kind
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double seconds = kNone, steps = kNone, examples = kNone, tokens = kNone, epochs = kNone, flops = kNone;
  bool any() const;
};
// UserError (where: `source`) for an empty, negative, zero, unknown-unit or malformed expression.
Limits parse_limits(std::string_view text, std::string_view source);
std::string to_string(const Limits&);

// Seconds since the process was started (from the kernel's own record of it, so that loading and linking count), or since HUAJIN_STARTED_AT
// (seconds since boot, CLOCK_BOOTTIME), which the ./huajin wrapper sets before it starts the binary.
double seconds_since_start();

class Budget {
 public:
  // `spent_seconds`: of earlier parts of a resumed run. `epoch_units`: units of the training split an epoch (tokens or examples).
  Budget(Limits limits, double spent_seconds, double epoch_units, bool units_are_tokens);
  // Seconds to keep for what comes after the last step: final evaluation, checkpoint, exit. Re-estimated while the run goes.
  void reserve(double seconds) { reserved_ = seconds; }
  double reserved() const { return reserved_; }
  // Of the nearest limit, in [0, 1]; 1: stop. Time: elapsed / (limit - reserved).
  double fraction(const Progress& progress, double elapsed_seconds) const;
  double fraction(const Progress& progress) const { return fraction(progress, spent_seconds_ + seconds_since_start()); }
  double elapsed() const { return spent_seconds_ + seconds_since_start(); }
  const Limits& limits() const { return limits_; }

 private:
  Limits limits_;
  double spent_seconds_, epoch_units_, reserved_ = 0;
  bool units_are_tokens_;
};

}  // namespace huajin
