// huajin transfer: tune the learning rate on a narrow model, train the wide one with it (muP, model/initialization/mup); or print the coordinate check.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/setup.h"
#include "huajin/budget/planner.h"
#include "huajin/core/budget.h"
#include "huajin/core/errors.h"
#include "huajin/io/file.h"
#include "huajin/io/json.h"
#include "huajin/model/initialization/mup/coordinate_check.h"
#include "huajin/run/model.h"

namespace huajin {
namespace {

constexpr int64_t kLeastTrialSteps = 20;     // fewer say nothing about a rate
constexpr int64_t kEvaluationBatches = 16;   // of the validation split, after each trial
constexpr int64_t kCoordinateSteps = 4;

struct Ends {
  Recipe wide, narrow;
  int64_t width = 0, base_width = 0;
};

std::string key_of(const Choice& choice, const char* key) {
  const auto at = choice.given.find(key);
  return at == choice.given.end() ? "" : at->second;
}

int64_t whole_of(const Choice& choice, const char* key) {
  const std::string text = key_of(choice, key);
  return text.empty() ? 0 : std::stoll(text);
}

Choice* find_mup(Recipe& recipe) {
  for (Choice& choice : recipe.techniques)
    if (choice.name == "mup") return &choice;
  return nullptr;
}

// The recipe with muP, and the one of the narrow model, which is the standard run at that width.
Ends both_ends(const CommandLine& line, const Recipe& recipe) {
  Ends ends{recipe, {}, 0, 0};
  if (line.base_width > 0 || find_mup(ends.wide) == nullptr) ends.wide.set(fmt::format("mup.base_width={}", line.base_width > 0 ? line.base_width : 64));
  complete_recipe(ends.wide);
  Choice& mup = *find_mup(ends.wide);
  ends.width = whole_of(ends.wide.model, "width"), ends.base_width = whole_of(mup, "base_width");
  ends.narrow = ends.wide;
  std::erase_if(ends.narrow.techniques, [](const Choice& choice) { return choice.name == "mup"; });
  set_model_width(ends.narrow, ends.base_width, whole_of(mup, "base_heads"));
  if (ends.base_width < 1 || ends.base_width >= ends.width)
    throw UserError(fmt::format("--base-width {}: must be less than model.width = {}, whose rate is looked for; give --set model.width=...", ends.base_width, ends.width));
  return ends;
}

double held_out_loss(Run& run) {
  const EvaluationSet* validation = run.inputs().validation.get();
  if (validation == nullptr) return run.trainer().last_loss();
  Evaluated sum;
  run.trainer().with_evaluated_weights([&] {
    for (int64_t i = 0; i < std::min(kEvaluationBatches, validation->batches()); ++i) {
      const Evaluated part = run.session().execution().evaluate(validation->batch(i));
      sum.sum += part.sum, sum.items += part.items;
    }
  });
  return sum.items > 0 ? sum.sum / sum.items : std::numeric_limits<double>::quiet_NaN();
}

struct Trial {
  double rate = 0, loss = 0;  // NaN: not finite
};

Trial try_rate(const CommandLine& line, Recipe recipe, const RunInputs& inputs, double rate, int64_t steps) {
  recipe.set(fmt::format("optimizer.learning_rate={}", rate));
  recipe.budget.limit = fmt::format("{}step", steps);
  recipe.checkpoint.every = "never";
  recipe.run.on_non_finite = "stop";
  Run run(recipe, inputs, RunPlace{line.device, "", "", nullptr});
  try {
    for (int64_t i = 0; i < steps; ++i) run.trainer().step();
  } catch (const Error& error) {
    if (error.code() != kExitNotFinite) throw;
    return {rate, std::numeric_limits<double>::quiet_NaN()};
  }
  const double loss = held_out_loss(run);
  return {rate, std::isfinite(loss) ? loss : std::numeric_limits<double>::quiet_NaN()};
}

// Steps of each trial, so that all of them take `share` of what the whole budget takes.
int64_t trial_steps(const CommandLine& line, const Ends& ends, const RunInputs& inputs) {
  Run wide(ends.wide, inputs, RunPlace{line.device, "", line.init_from, nullptr});  // refusals of the wide run come before the first trial
  const Plan wide_plan = make_plan(wide);
  Run narrow(ends.narrow, inputs, RunPlace{line.device, "", "", nullptr});
  const Plan narrow_plan = make_plan(narrow);
  const Limits limits = parse_limits(ends.wide.budget.limit, "budget.limit");
  const double whole = std::min(limits.seconds, wide_plan.steps * wide_plan.seconds_step);
  const auto steps = static_cast<int64_t>(line.share * whole / static_cast<double>(line.rates) / narrow_plan.seconds_step);
  if (steps < kLeastTrialSteps)
    throw UserError(fmt::format("--share {}: buys {} steps of the width-{} model for each of {} rates, at least {} are needed; give a larger --share or --budget, or fewer --rates",
                                line.share, steps, ends.base_width, line.rates, kLeastTrialSteps));
  return steps;
}

// What the trials left: of the seconds what is really left, of other limits all but the share.
std::string budget_left(const std::string& limit, double share) {
  Limits limits = parse_limits(limit, "budget.limit");
  limits.seconds = limits.seconds - seconds_since_start();
  if (!(limits.seconds > 0)) throw UserError(fmt::format("--budget {}: is spent by the trials; give a larger --budget or a smaller --share", limit));
  if (limits.seconds < Limits::kNone) limits.seconds = std::max(1.0, std::floor(limits.seconds));
  if (limits.steps < Limits::kNone) limits.steps = std::max(1.0, std::floor(limits.steps * (1 - share)));
  for (double* value : {&limits.examples, &limits.tokens, &limits.epochs, &limits.flops})
    if (*value < Limits::kNone) *value *= 1 - share;
  return to_string(limits);
}

void print_trials(const std::vector<Trial>& trials, double best, const Ends& ends, int64_t steps, const std::string& file) {
  fmt::print("width {}, {} steps each\n{:>14} {:>12}\n", ends.base_width, steps, "learning rate", "loss");
  for (auto& trial : trials)
    fmt::print("{:>14.6g} {:>12}{}\n", trial.rate, std::isfinite(trial.loss) ? fmt::format("{:.4f}", trial.loss) : "not finite", trial.rate == best ? "  best" : "");
  fmt::print("recipe of width {}: {}\n", ends.width, file);
}

// The training is a process of its own, whose budget starts now.
[[noreturn]] void train_now(const CommandLine& line, const std::string& file) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  ::setenv("HUAJIN_STARTED_AT", fmt::format("{}.{:09}", now.tv_sec, now.tv_nsec).c_str(), 1);
  std::vector<std::string> words{"huajin-engine", "train", "--recipe", file, "--runs-dir", line.runs_folder, "--device", line.device, "--threads", std::to_string(line.threads)};
  if (!line.run.empty()) words.insert(words.end(), {"--run", line.run});
  if (!line.cache.empty()) words.insert(words.end(), {"--cache-dir", line.cache});
  if (line.quiet) words.emplace_back("--quiet");
  if (line.json) words.emplace_back("--json");
  if (line.debug) words.emplace_back("--debug");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  throw UserError(fmt::format("{}: is written, but the training could not be started; do it with huajin train --recipe {}", file, file));
}

std::vector<std::pair<std::string, double>> sizes_of(const CommandLine& line, const Ends& ends, const RunInputs& inputs, int64_t width, bool mup) {
  Recipe recipe = mup ? ends.wide : ends.narrow;
  const int64_t heads = mup ? 0 : whole_of(ends.wide.model, "heads");
  set_model_width(recipe, width, heads);
  recipe.checkpoint.every = "never";
  Run run(recipe, inputs, RunPlace{line.device, "", "", nullptr});
  return activation_sizes(run.session(), run.trainer(), kCoordinateSteps);
}

int coordinate_table(const CommandLine& line, const Ends& ends, const RunInputs& inputs) {
  std::vector<int64_t> widths;
  for (int64_t width = ends.base_width; width <= ends.width; width *= 2) widths.push_back(width);
  Json all = Json::object();
  for (const bool mup : {true, false}) {
    std::vector<std::vector<std::pair<std::string, double>>> columns;
    for (const int64_t width : widths) columns.push_back(sizes_of(line, ends, inputs, width, mup));
    const char* title = mup ? "with mup" : "without mup";
    if (!line.json) {
      fmt::print("{}: mean size of each block's output after {} steps\n{:<28}", title, kCoordinateSteps, "width");
      for (const int64_t width : widths) fmt::print(" {:>10}", width);
      fmt::print("\n");
    }
    for (size_t block = 0; block < columns.front().size(); ++block) {
      if (!line.json) fmt::print("{:<28}", columns.front()[block].first);
      for (size_t i = 0; i < widths.size(); ++i) {
        if (!line.json) fmt::print(" {:>10.4g}", columns[i][block].second);
        all[title][columns.front()[block].first][std::to_string(widths[i])] = columns[i][block].second;
      }
      if (!line.json) fmt::print("\n");
    }
  }
  if (line.json) fmt::print("{}\n", json_text(all));
  return kExitOk;
}

}  // namespace

int transfer_command(const CommandLine& line) {
  if (!line.init_from.empty()) throw UserError(fmt::format("--init-from {}: weights of one width cannot start another; leave it out", line.init_from));
  const Prepared prepared = prepare(line);
  if (prepared.communicator && prepared.communicator->ranks() > 1) throw UserError("huajin transfer: tunes in one process; start it without mpirun, with --tune-only, and train the recipe with mpirun");
  const std::string file = line.output.empty() ? "transfer.toml" : line.output;
  if (!line.coordinates && exists(file)) throw UserError(file + ": exists already; name another file with --out");
  const Ends ends = both_ends(line, prepared.recipe);
  const RunInputs inputs = inputs_of(ends.wide, cache_folder(line));
  if (line.coordinates) return coordinate_table(line, ends, inputs);
  const int64_t steps = trial_steps(line, ends, inputs);
  const double middle = std::stod(key_of(ends.wide.optimizer, "learning_rate"));
  std::vector<Trial> trials;
  for (int64_t i = 0; i < line.rates; ++i) trials.push_back(try_rate(line, ends.narrow, inputs, middle * std::pow(2.0, static_cast<double>(i - line.rates / 2)), steps));
  std::vector<Trial> finite = trials;
  std::erase_if(finite, [](const Trial& trial) { return !std::isfinite(trial.loss); });
  if (finite.empty()) throw UserError(fmt::format("optimizer.learning_rate={}: no rate around it gives a finite loss; begin with a smaller one", middle));
  const Trial best = *std::min_element(finite.begin(), finite.end(), [](const Trial& a, const Trial& b) { return a.loss < b.loss; });
  if (best.rate == trials.front().rate || best.rate == trials.back().rate)
    std::fprintf(stderr, "huajin: the best rate is the last of the ladder; begin there with --set optimizer.learning_rate=%g\n", best.rate);
  Recipe chosen = ends.wide;
  chosen.set(fmt::format("optimizer.learning_rate={}", best.rate));
  chosen.budget.limit = budget_left(chosen.budget.limit, line.share);
  write_atomically(file, chosen.resolved());
  if (line.json && line.tune_only) {
    Json out{{"steps", steps}, {"base_width", ends.base_width}, {"width", ends.width}, {"best", best.rate}, {"recipe", file}, {"trials", Json::array()}};
    for (auto& trial : trials) out["trials"].push_back({{"learning_rate", trial.rate}, {"loss", std::isfinite(trial.loss) ? Json(trial.loss) : Json()}});
    fmt::print("{}\n", json_text(out));
  } else if (!line.json) {
    print_trials(trials, best.rate, ends, steps, file);
  }
  if (line.tune_only) return kExitOk;
  train_now(line, file);
}

}  // namespace huajin
