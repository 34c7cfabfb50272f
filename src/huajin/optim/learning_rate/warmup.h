// Warm-up that every schedule here shares: the factor rises linearly to one, and is never zero.
#pragma once
#include <cstdint>
#include <string_view>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct Warmup {
  static constexpr double kLeast = 0.01;  // factor of the very first update where the length is a fraction: how much a step will take isn't known yet
  double warmup = 0;                      // fraction of the budget
  int64_t warmup_steps = 0;               // instead: updates
  void fields(Fields& f) {
    f.number("warmup", warmup, {.least = 0, .most = 1, .open_most = true}, "fraction of the budget in which the rate rises linearly");
    f.integer("warmup_steps", warmup_steps, {.least = 0}, "the same in updates; give one of the two");
  }
};

// In (0, 1]: min(1, fraction / warmup), at least kLeast; or min(1, (step + 1) / warmup_steps).
double warmup_factor(const Warmup& w, const Progress& progress);
// Part of what follows a warm-up that was given as a fraction: 0 when it ends, 1 when the budget ends. With warmup_steps: the whole budget's
// fraction.
double after_warmup(const Warmup& w, const Progress& progress);
// UserError: both were given, or more updates than `total_steps` (infinity: unknown) are asked for.
void check_warmup(const Warmup& w, double total_steps);

}  // namespace huajin
