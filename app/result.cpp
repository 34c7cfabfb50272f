#include "app/result.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/progress.h"
#include "app/setup.h"
#include "huajin/core/budget.h"
#include "huajin/core/checkpoint.h"

namespace huajin {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();  // null in JSON

const char* end_name(End end) { return end == End::kBudget ? "budget" : end == End::kTerminated ? "terminated" : "not_finite"; }

}  // namespace

Json result_json(Run& run, const Result& result, const std::string& run_name, double before) {
  const TrainerState& state = result.state;
  const bool images = run.inputs().images;
  const double limit = run.trainer().budget().limits().seconds;
  Json out{{"run", run_name},
           {"end", end_name(result.end)},
           {"seconds_training", state.training_seconds},
           {"seconds_to_first_step", result.first_step_seconds},
           {"seconds_stalled", result.stall_seconds},
           {"budget", run.recipe().budget.limit},
           {"budget_seconds", limit < Limits::kNone ? limit : kNoValue},
           {"steps", state.progress.step},
           {"tokens", images ? Json(nullptr) : Json(state.progress.tokens)},
           {"examples", state.progress.examples},
           {"flops", state.progress.flops},
           {"parameters", run.parameters()},
           {"loss", result.loss},
           {"val_loss", result.evaluated ? result.evaluation.loss : kNoValue},
           {"val_complete", result.evaluated ? Json(result.evaluation.complete) : Json(nullptr)},
           {"weights_hash", weights_hash(run.session().table())},
           {"checkpoint", result.checkpoint},
           {"peak_rss_mb", peak_rss_mb()},
           {"recipe", run.recipe().resolved()}};
  if (images)
    out["val_accuracy"] = result.evaluated ? result.evaluation.accuracy : kNoValue;
  else
    out["val_bits_per_byte"] = result.evaluated ? result.evaluation.bits_per_byte : kNoValue;
  out["seconds_total"] = before + seconds_since_start();
  return out;
}

std::string result_text(Run& run, const Result& result, const std::string& run_folder) {
  const Progress& progress = result.state.progress;
  const char* units = run.inputs().images ? "images" : "tokens";
  std::string text = fmt::format("trained {} parameters for {} steps ({} {}) in {}\n", count_text(run.parameters()), progress.step,
                                 count_text(static_cast<double>(progress.tokens)), units, duration_text(result.state.elapsed_seconds));
  if (result.evaluated) {
    text += fmt::format("validation loss {:.4f}", result.evaluation.loss);
    if (run.inputs().images)
      text += fmt::format(", accuracy {:.2f} %", 100 * result.evaluation.accuracy);
    else if (std::isfinite(result.evaluation.bits_per_byte))
      text += fmt::format(", {:.3f} bits per byte", result.evaluation.bits_per_byte);
    text += result.evaluation.complete ? "\n" : " (a part of the validation data: the deadline came first)\n";
  }
  text += result.checkpoint.empty() ? "no checkpoint could be written\n" : fmt::format("checkpoint {}\n", result.checkpoint);
  return text + fmt::format("run folder {}\n", run_folder);
}

}  // namespace huajin
