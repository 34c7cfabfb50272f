// huajin compare A B ...: what runs were, cost and reached, side by side; and the keys of the recipes that differ.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/report_page.h"
#include "app/run_files.h"
#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

ReportedRun read_run(const std::string& runs, const std::string& given) {
  const std::string folder = find_run(runs, given);
  if (!exists(folder + "/result.json")) throw UserError(folder + ": has no result.json: the run did not end; huajin resume " + given + " ends it");
  return {given, read_json(folder + "/result.json"), recipe_keys(folder), {}};
}

std::string cell(const Json& result, const char* key) {
  const auto at = result.find(key);
  if (at == result.end() || at->is_null()) return "-";
  if (at->is_string()) return at->get<std::string>().substr(0, 12);
  if (at->is_number_float()) return fmt::format("{:.4g}", at->get<double>());
  return at->dump();
}

void print_row(const std::string& head, const std::vector<std::string>& cells) {
  std::string row = fmt::format("{:<32}", head);
  for (auto& text : cells) row += fmt::format(" {:>18}", text.size() > 18 ? text.substr(0, 15) + "..." : text);
  fmt::print("{}\n", row);
}

}  // namespace

int compare_command(const CommandLine& line) {
  std::vector<ReportedRun> runs;
  for (auto& subject : line.subjects) runs.push_back(read_run(line.runs_folder, subject));
  const auto differ = recipe_differences(runs);
  if (line.json) {
    Json out{{"differ", differ}, {"runs", Json::array()}};
    for (auto& run : runs) out["runs"].push_back({{"run", run.name}, {"result", run.result}});
    fmt::print("{}\n", json_text(out));
    return kExitOk;
  }
  std::vector<std::string> names;
  for (auto& run : runs) names.push_back(run.name);
  print_row("", names);
  for (auto* key : {"val_bits_per_byte", "val_accuracy", "val_loss", "loss", "steps", "tokens", "examples", "parameters", "seconds_training",
                    "seconds_total", "budget_seconds", "peak_rss_mb", "weights_hash"}) {
    std::vector<std::string> cells;
    bool any = false;
    for (auto& run : runs) cells.push_back(cell(run.result, key)), any = any || cells.back() != "-";
    if (any) print_row(key, cells);
  }
  if (!differ.empty()) fmt::print("\nrecipe keys that differ\n");
  for (auto& [key, values] : differ) print_row(key, values);
  return kExitOk;
}

}  // namespace huajin
