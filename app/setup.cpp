#include "app/setup.h"

#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "app/default_corpus.h"
#include "huajin/budget/chooser.h"
#include "huajin/core/budget.h"
#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/core/process.h"
#include "huajin/core/registry.h"
#include "huajin/io/file.h"
#include "huajin/system/data/data_parallel/launch.h"
#include "huajin/zoo/zoo.h"

namespace huajin {
namespace {

constexpr const char* kDefaultBudget = "2m";

void apply_options(Recipe& recipe, const CommandLine& line) {
  if (!line.data.empty()) recipe.data.path = line.data;
  if (!line.validation.empty()) recipe.data.validation = line.validation;
  if (!line.budget.empty()) recipe.budget.limit = line.budget;
  if (line.seed >= 0) recipe.run.seed = line.seed;
}

// What --set says about the data and the budget counts before the chooser looks at them.
void apply_early_sets(Recipe& recipe, const CommandLine& line) {
  for (auto& set : line.sets)
    if (set.rfind("data.", 0) == 0 || set.rfind("budget.", 0) == 0) recipe.set(set);
}

Prepared decide(const CommandLine& line) {
  Prepared prepared;
  Recipe& recipe = prepared.recipe;
  if (!line.recipe.empty()) {
    recipe = Recipe::read(read_file(line.recipe, 1 << 20), line.recipe);
    apply_options(recipe, line);
  } else {
    recipe.budget.limit = kDefaultBudget;
    apply_options(recipe, line);
    apply_early_sets(recipe, line);
    const Limits limits = parse_limits(recipe.budget.limit, line.budget.empty() ? "budget.limit" : "--budget");
    Recipe look = recipe;
    if (look.data.path.empty()) look.data.path = default_corpus(cache_folder(line));
    Choosing chosen = choose(recipe, inspect_data(look.data), limits, measure_machine());
    recipe = std::move(chosen.recipe), prepared.reasons = std::move(chosen.reasons);
  }
  for (auto& set : line.sets) recipe.set(set);
  parse_limits(recipe.budget.limit, line.budget.empty() ? "budget.limit" : "--budget");
  complete_recipe(recipe);
  return prepared;
}

std::vector<std::string> names_of(PartOfRun part) {
  std::vector<std::string> names;
  for (auto& entry : catalog().entries())
    if (entry.part == part) names.push_back(entry.name);
  return names;
}

[[noreturn]] void refuse(const Choice& choice, const std::string& what, const std::string& kind, const std::vector<std::string>& names) {
  const auto at = choice.where.find("name");
  const std::string place = at == choice.where.end() ? "" : at->second + (at->second == "--set" ? " " : ": ");
  throw UserError(place + what + ": no such " + kind + suggestion(choice.name, names));
}

void complete_part(Choice& choice, PartOfRun part, const std::string& table) {
  const TechniqueEntry* entry = catalog().find(choice.name);
  const std::string kind = part == PartOfRun::kTechnique ? "technique" : table;
  const std::string what = part == PartOfRun::kTechnique ? choice.name : table + ".name = \"" + choice.name + "\"";
  if (entry != nullptr && entry->part != part)
    throw UserError(what + ": is " +
                    (entry->part == PartOfRun::kOptimizer  ? "an optimizer; choose it with --set optimizer=" + choice.name
                     : entry->part == PartOfRun::kSchedule ? "a schedule; choose it with --set schedule=" + choice.name
                                                           : "a technique; switch it on with --set " + choice.name + "=true"));
  if (entry == nullptr) refuse(choice, what, kind, names_of(part));
  ChoiceReader reader(choice, table);
  entry->describe(reader);  // types, ranges, unknown keys: before any data is opened
  reader.finish();
  complete(choice, entry->describe);
}

}  // namespace

std::string cache_folder(const CommandLine& line) {
  if (!line.cache.empty()) return line.cache;
  if (const char* cache = std::getenv("HUAJIN_CACHE"); cache != nullptr && *cache != 0) return cache;
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr || *home == 0 ? "/tmp" : home) + "/.cache/huajin";
}

void complete_recipe(Recipe& recipe) {
  for (auto& technique : recipe.techniques) complete_part(technique, PartOfRun::kTechnique, technique.name);
  complete_part(recipe.optimizer, PartOfRun::kOptimizer, "optimizer");
  complete_part(recipe.schedule, PartOfRun::kSchedule, "schedule");
  std::vector<std::string> models;
  const ZooEntry* model = nullptr;
  for (auto& entry : zoo()) {
    models.push_back(entry.name);
    if (entry.name == recipe.model.name) model = &entry;
  }
  if (model == nullptr) refuse(recipe.model, "model.name = \"" + recipe.model.name + "\"", "model", models);
  ChoiceReader reader(recipe.model, "model");
  model->describe(reader);
  reader.finish();
  complete(recipe.model, model->describe);
}

Prepared prepare(const CommandLine& line) {
  if (!launched_with_ranks()) {
    Prepared prepared = decide(line);
    return prepared;
  }
  LaunchOptions options;
  if (!line.recipe.empty()) options.timeout_seconds = Recipe::read(read_file(line.recipe, 1 << 20), line.recipe).layout.timeout_seconds;
  const Launched launched = launch(options);
  Prepared prepared;
  std::string text;
  if (launched.communicator->rank() == 0) prepared = decide(line), text = prepared.recipe.resolved();
  launched.communicator->broadcast(text, 0);
  prepared.recipe = Recipe::read(text, "recipe of rank 0");
  prepared.communicator = launched.communicator;
  prepared.reasons.push_back(launched.description);
  prepared.threads = launched.threads;
  return prepared;
}

// A pipe or /dev/zero has no end to split a tenth from, and would be waited for for ever.
static void refuse_device(const std::string& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!path.empty() && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status))
    throw UserError(path + ": is a device or a pipe; give a file or a folder");
}

RunInputs inputs_of(const Recipe& recipe, const std::string& cache) {
  Recipe look = recipe;
  if (look.data.path.empty()) look.data.path = default_corpus(cache);
  refuse_device(look.data.path), refuse_device(look.data.validation);
  try {
    return open_inputs(look, cache);
  } catch (const UserError& error) {  // a tokenizer does not know whose text it reads
    const std::string what = error.what();
    if (what.rfind("the text ", 0) == 0) throw UserError(look.data.path + ": " + what);
    throw;
  }
}

at::Device device_of(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const std::string missing = load_cuda();
  if (name == "cuda" && !missing.empty()) throw UserError("--device cuda: " + missing + "; use --device cpu");
  return missing.empty() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace huajin
