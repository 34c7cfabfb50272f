#include "huajin/optim/learning_rate/shaped_schedule.h"

#include <algorithm>
#include <limits>

#include "huajin/core/errors.h"

namespace huajin {

double warmup_factor(const Warmup& w, const Progress& progress) {
  if (w.warmup_steps > 0) return std::min(1.0, static_cast<double>(progress.step + 1) / static_cast<double>(w.warmup_steps));
  if (w.warmup > 0) return std::clamp(progress.fraction / w.warmup, Warmup::kLeast, 1.0);
  return 1;
}

double after_warmup(const Warmup& w, double fraction) { return std::clamp((fraction - w.warmup) / (1 - w.warmup), 0.0, 1.0); }

void check_warmup(const Warmup& w, double total_steps) {
  if (w.warmup > 0 && w.warmup_steps > 0) throw UserError("schedule: both warmup and warmup_steps are given; keep one");
  if (static_cast<double>(w.warmup_steps) > total_steps)
    throw UserError("schedule.warmup_steps=" + std::to_string(w.warmup_steps) + ": the budget ends after " +
                    std::to_string(static_cast<int64_t>(total_steps)) +
                    " steps, before the warm-up does; give fewer, or a fraction as schedule.warmup");
}

ShapedSchedule::ShapedSchedule(const Warmup& warmup, Shape shape) : warmup_(warmup), shape_(std::move(shape)) {
  check_warmup(warmup, std::numeric_limits<double>::infinity());
}

}  // namespace huajin
