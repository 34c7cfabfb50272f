#include "huajin/budget/planner.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "huajin/core/budget.h"
#include "huajin/core/source.h"

namespace huajin {
namespace {

double status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return std::strtod(line.c_str() + key.size() + 1, nullptr) * 1024;
  return 0;
}

double bytes_of(const Tensor& t) { return t.defined() ? static_cast<double>(t.numel()) * static_cast<double>(t.element_size()) : 0; }

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double resident_bytes() { return status_bytes("VmRSS"); }
double peak_resident_bytes() { return status_bytes("VmHWM"); }

double steps_in_budget(const Limits& limits, double seconds_step, double seconds_start, double seconds_end, double units_per_step, double rows,
                       double flops_step, double epoch_units) {
  double steps = limits.steps;
  if (limits.seconds < Limits::kNone) steps = std::min(steps, std::max(0.0, limits.seconds - seconds_start - seconds_end) / seconds_step);
  steps = std::min(steps, limits.tokens / units_per_step);
  steps = std::min(steps, limits.examples / rows);
  steps = std::min(steps, limits.epochs * epoch_units / units_per_step);
  return std::min(steps, limits.flops / std::max(flops_step, 1.0));
}

Plan make_plan(Run& run) {
  RunSession& session = run.session();
  Trainer& trainer = run.trainer();
  Plan plan;
  plan.parameters = run.parameters();
  for (auto& p : session.table().parameters) plan.memory.weights += bytes_of(p.value), plan.memory.gradients += p.trainable ? bytes_of(p.value) : 0;
  const auto& options = session.options();
  if (options.compute != options.master)
    for (auto& entry : session.table().entries)
      if (!entry.weight->options.keep_precision) {
        double count = static_cast<double>(c10::elementSize(options.compute));
        for (const int64_t n : entry.weight->shape) count *= static_cast<double>(n);
        plan.memory.working_copies += count;
      }
  plan.memory.program = std::max(0.0, resident_bytes() - plan.memory.weights);
  plan.seconds_start = seconds_since_start();
  const double first = seconds_of([&] { trainer.step(); });
  const double second = seconds_of([&] { trainer.step(); }), third = seconds_of([&] { trainer.step(); });
  plan.seconds_step = std::min({first, second, third});
  plan.seconds_start += first - plan.seconds_step;
  for (auto& slot : session.slots())
    for (auto& tensor : slot.tensors) plan.memory.optimizer += bytes_of(tensor);

  const Progress& progress = trainer.state().progress;
  const double units = static_cast<double>(progress.tokens) / 3, rows = static_cast<double>(progress.examples) / 3, flops = progress.flops / 3;
  plan.flops_per_unit = flops / std::max(units, 1.0);
  plan.flops_rate = flops / plan.seconds_step;
  if (run.inputs().validation && run.inputs().validation->batches() > 0) {
    const auto& validation = *run.inputs().validation;
    session.execution().evaluate(validation.batch(0));
    plan.seconds_end = seconds_of([&] { session.execution().evaluate(validation.batch(0)); }) * static_cast<double>(validation.batches());
  }
  // Opening the data, the first step or the evaluation may have taken more than later steps do.
  plan.memory.activations = std::max(0.0, peak_resident_bytes() - (plan.memory.total() - plan.memory.activations));
  plan.seconds_end += (plan.memory.weights + plan.memory.optimizer) / 200e6;  // to write and verify a checkpoint
  plan.steps = steps_in_budget(trainer.budget().limits(), plan.seconds_step, plan.seconds_start, plan.seconds_end, units, rows, flops,
                               static_cast<double>(run.inputs().train_units));
  plan.units = plan.steps * units;
  return plan;
}

}  // namespace huajin
