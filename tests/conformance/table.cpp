#include "table.h"

#include <stdexcept>

namespace huajin {

// clang-format off
const std::vector<Row>& conformance_table() {
  static const std::vector<Row> table{
      {"adamw", {{"learning_rate", 0.02}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"adabelief", {{"learning_rate", 0.02}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"schedule_free", {{"learning_rate", 0.05}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"nadamw", {{"learning_rate", 0.02}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"radam", {{"learning_rate", 0.02}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"adan", {{"learning_rate", 0.02}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"adam", {{"learning_rate", 0.02}, {"amsgrad", true}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"adafactor", {{"learning_rate", 0.1}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"adagrad", {{"learning_rate", 0.05}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"rmsprop", {{"learning_rate", 0.01}, {"momentum", 0.5}, {"centered", true}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"lars", {{"learning_rate", 0.1}, {"trust", 0.5}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"lamb", {{"learning_rate", 0.05}, {"normalize_gradient", true}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"sophia", {{"learning_rate", 0.02}, {"every", 2}, {"weight_decay", 0.1}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"sgd", {{"learning_rate", 0.1}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"lion", {{"learning_rate", 0.02}, {"weight_decay", 0.1}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"muon", {{"learning_rate", 0.05}, {"adamw_learning_rate", 0.02}}, nullptr, Data::kBoth, "a run has one optimizer"},
      {"constant", {{"warmup_steps", 3}}, {{"warmup_steps", 1}}},
      {"linear", {{"warmup", 0.1}}, {{"final", 1}}},
      {"cosine", {{"warmup_steps", 2}}, {{"final", 1}}},
      {"wsd", {{"cooldown", 0.5}}, {{"final", 1}}},
      {"rex", {{"warmup", 0.1}}, {{"final", 1}}},
      {"step", {{"milestones", "0.3, 0.6"}, {"factor", 0.5}}, {{"factor", 1}}},
      {"exponential", {{"final", 0.1}}, {{"final", 1}}},
      {"polynomial", {{"power", 2}}, {{"final", 1}}},
      {"cosine_restarts", {{"cycles", 2}}, {{"final", 1}}},
      {"one_cycle", {{"start", 0.2}}, {{"start", 1}, {"final", 1}}},
      {"cyclic", {{"cycles", 2}}, {{"least", 1}}},
      {"plateau", {{"factor", 0.5}, {"patience", 0}, {"threshold", 0.5}}, {{"factor", 1}}},  // few evaluations halve the loss
      {"layer_decay", {{"decay", 0.7}}, {{"decay", 1}}},
      {"clip", {{"norm", 0.1}}, {{"norm", 1e30}}},
      {"label_smoothing", {{"mass", 0.1}}, {{"mass", 0}}},
      {"z_loss", {{"coefficient", 0.01}}, {{"coefficient", 0}}},
      {"distillation", {{"weight", 0.3}, {"decay", 0.8}}, {{"weight", 0}}},
      {"spike", {{"deviations", 3}, {"window", 6}, {"most", 1}}, {{"deviations", 0}}},
      {"stochastic_rounding", {{"vectors", true}}, nullptr, Data::kBoth, "rounding is all it does; a recipe without it has none"},
      {"sam", {{"rho", 0.05}}, {{"rho", 0}}},
      {"asam", {{"rho", 0.3}}, {{"rho", 0}}},
      {"gsam", {{"rho", 0.05}, {"final_rho", 0.02}, {"alpha", 0.2}}, {{"rho", 0}, {"final_rho", 0}}},
      {"esam", {{"rho", 0.05}}, {{"rho", 0}}},
      {"looksam", {{"rho", 0.05}, {"every", 3}}, {{"rho", 0}}},
      {"gradient_norm_penalty", {{"radius", 0.05}}, {{"balance", 0}}},
      {"ema", {{"decay", 0.8}}, {{"decay", 0.8}}},  // it never changes training, so on is off
      {"swa", {{"start", 0.2}, {"statistics", 2}}, {{"start", 0.2}, {"statistics", 2}}},  // nor do these
      {"lawa", {{"every", 2}, {"snapshots", 3}, {"statistics", 2}}, {{"every", 2}, {"snapshots", 3}, {"statistics", 2}}},
      {"lookahead", {{"every", 3}}, {{"share", 1}}},
      {"twa", {{"from", 0.2}, {"start", 0.6}, {"snapshots", 3}}, {{"start", 1}}},
      {"mixup", {{"alpha", 0.4}}, {{"alpha", 0}}, Data::kVectors},
      {"importance_sampling", {{"presample", 3}, {"threshold", 1}}, {{"presample", 1}}},
      {"initializer", {{"law", "kaiming"}, {"shape", "uniform"}}, {{"law", "declared"}}},
      {"shrink_and_perturb", {{"shrink", 0.6}, {"noise", 0.02}}, {{"shrink", 1}, {"noise", 0}}},
      {"mup", {{"base_width", 8}}, {{"base_width", 0}}},
      {"stacking", {{"doublings", 1}, {"until", 0.5}}, {{"doublings", 0}}, Data::kText},
      {"soft_cap", {{"cap", 5}}, {{"cap", 0}}},
      {"multi_token", {{"tokens", 3}}, {{"tokens", 1}}, Data::kText},
  };
  return table;
}
// clang-format on

const Row& row_of(const std::string& name) {
  for (auto& row : conformance_table())
    if (row.name == name) return row;
  throw std::out_of_range("tests/conformance/table.cpp has no row for \"" + name + "\"; add one");
}

std::vector<bool> text_or_not(const Row& row) {
  if (row.data == Data::kBoth) return {true, false};
  return {row.data == Data::kText};
}

TinyOptions without(bool text) {
  TinyOptions options;
  options.text = text;
  return options;
}

TinyOptions with(const Row& row, const nlohmann::json& json, bool text) {
  TinyOptions options = without(text);
  const PartOfRun part = catalog().find(row.name)->part;
  if (part == PartOfRun::kOptimizer)
    options.optimizer = {row.name, json};
  else if (part == PartOfRun::kSchedule)
    options.schedule = {row.name, json};
  else
    options.techniques = {{row.name, json}};
  return options;
}

}  // namespace huajin
