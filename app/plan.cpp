// huajin plan: what a run will take and give; of a finished run, predicted against measured.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/progress.h"
#include "app/setup.h"
#include "huajin/budget/planner.h"
#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

void print_plan(const Plan& plan, const Run& run, const std::string& budget) {
  const char* unit = run.inputs().images ? "image" : "token";
  const auto megabytes = [](double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); };
  fmt::print("parameters        {}\n", count_text(plan.parameters));
  fmt::print("FLOPs a {}     {} (forward and backward)\n", unit, count_text(plan.flops_per_unit));
  fmt::print("memory            {}\n", megabytes(plan.memory.total()));
  fmt::print("  program, data   {}\n  weights         {}\n", megabytes(plan.memory.program), megabytes(plan.memory.weights));
  if (plan.memory.working_copies > 0) fmt::print("  working copies  {}\n", megabytes(plan.memory.working_copies));
  fmt::print("  gradients       {}\n  optimizer       {}\n  activations     {}\n", megabytes(plan.memory.gradients), megabytes(plan.memory.optimizer),
             megabytes(plan.memory.activations));
  fmt::print("seconds a step    {:.4f} ({:.1f} GFLOP/s)\n", plan.seconds_step, plan.flops_rate / 1e9);
  fmt::print("before, after     {:.1f} s until the first step, {:.1f} s for evaluation and checkpoint\n", plan.seconds_start, plan.seconds_end);
  fmt::print("the budget ({}) buys {} steps, {} {}s, {:.2f} epochs\n", budget, count_text(plan.steps), count_text(plan.units), unit,
             plan.units / static_cast<double>(std::max<int64_t>(run.inputs().train_units, 1)));
}

Json plan_json(const Plan& plan) {
  return {{"parameters", plan.parameters},
          {"flops_per_unit", plan.flops_per_unit},
          {"memory_bytes",
           {{"program", plan.memory.program},
            {"weights", plan.memory.weights},
            {"working_copies", plan.memory.working_copies},
            {"gradients", plan.memory.gradients},
            {"optimizer", plan.memory.optimizer},
            {"activations", plan.memory.activations},
            {"total", plan.memory.total()}}},
          {"seconds_step", plan.seconds_step},
          {"seconds_start", plan.seconds_start},
          {"seconds_end", plan.seconds_end},
          {"steps", plan.steps},
          {"units", plan.units}};
}

// Columns of a finished run.
struct Measured {
  const char* name;
  double predicted, measured;
};
std::vector<Measured> against(const Plan& plan, const Json& result) {
  const auto number = [&](const char* key) { return result.contains(key) && result[key].is_number() ? result[key].get<double>() : 0.0; };
  const double steps = number("steps");
  return {{"parameters", plan.parameters, number("parameters")},
          {"seconds a step", plan.seconds_step, steps > 0 ? number("seconds_training") / steps : 0},
          {"steps", plan.steps, steps},
          {"memory, MB", plan.memory.total() / 1e6, number("peak_rss_mb") * 1.048576}};
}

}  // namespace

int plan_command(const CommandLine& line) {
  CommandLine planned = line;
  Json result;
  if (!line.subjects.empty()) {
    const std::string folder = find_run(line.runs_folder, line.subjects.front());
    if (!exists(folder + "/result.json")) throw UserError(folder + ": has no result.json: the run did not end; huajin resume ends it");
    planned.recipe = folder + "/recipe.toml";
    result = read_json(folder + "/result.json");
  }
  Prepared prepared = prepare(planned);
  Run run(prepared.recipe, inputs_of(prepared.recipe, cache_folder(line)), RunPlace{line.device, "", line.init_from, prepared.communicator});
  const Plan plan = make_plan(run);
  if (prepared.rank() != 0) return kExitOk;
  if (line.json) {
    Json out = plan_json(plan);
    if (!result.is_null())
      for (auto& row : against(plan, result)) out["against"][row.name] = {{"predicted", row.predicted}, {"measured", row.measured}};
    fmt::print("{}\n", json_text(out));
    return kExitOk;
  }
  for (auto& reason : prepared.reasons) fmt::print("{}\n", reason);
  print_plan(plan, run, run.recipe().budget.limit);
  if (!result.is_null()) {
    fmt::print("\n{:<18} {:>14} {:>14} {:>8}\n", "", "predicted", "measured", "ratio");
    for (auto& row : against(plan, result))
      fmt::print("{:<18} {:>14.6g} {:>14.6g} {:>8.2f}\n", row.name, row.predicted, row.measured,
                 row.measured > 0 ? row.predicted / row.measured : 0.0);
  }
  return kExitOk;
}

}  // namespace huajin
