// What a run will cost before it is paid for: counted from the built session, and measured with a few steps of it.
#pragma once
#include "huajin/run/run.h"

namespace huajin {

struct MemoryPlan {    // bytes
  double program = 0;  // libtorch, the data, this process before the model
  double weights = 0, working_copies = 0, gradients = 0, optimizer = 0;
  double activations = 0;  // the rest of the peak: of a step, of the evaluation, or of opening the data
  double total() const { return program + weights + working_copies + gradients + optimizer + activations; }
};

struct Plan {
  double parameters = 0;
  double flops_per_unit = 0;  // a token or an image: forward and backward
  MemoryPlan memory;
  double seconds_step = 0, seconds_start = 0, seconds_end = 0;  // one step; until the first; evaluation and checkpoint after the last
  double steps = 0, units = 0;                                  // that the budget buys
  double flops_rate = 0;                                        // reached, a second
};

// Makes three steps and one batch of evaluation. The run is not fit to train afterwards.
Plan make_plan(Run& run);

// What `limits` buy at this speed. Pure. `units_per_step`: tokens or images; `epoch_units`: of the training split.
double steps_in_budget(const Limits& limits, double seconds_step, double seconds_start, double seconds_end, double units_per_step, double rows,
                       double flops_step, double epoch_units);

// Bytes this process holds now, and at most so far; 0 where the kernel does not say.
double resident_bytes();
double peak_resident_bytes();

}  // namespace huajin
