// huajin list: what recipes may name, and the runs that there are.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/core/registry.h"
#include "huajin/io/json.h"
#include "huajin/io/run_folder.h"
#include "huajin/zoo/zoo.h"

namespace huajin {
namespace {

struct Row {
  std::string kind, name, where, what;
};

std::vector<Row> rows_of(const std::string& kind, const std::string& runs_folder) {
  std::vector<Row> rows;
  const auto wanted = [&](const char* name) { return kind.empty() || kind == name; };
  for (auto& entry : catalog().entries()) {
    const char* name = entry.part == PartOfRun::kOptimizer ? "optimizers" : entry.part == PartOfRun::kSchedule ? "schedules" : "techniques";
    if (wanted(name)) rows.push_back({name, entry.name, entry.box, entry.what});
  }
  if (wanted("models"))
    for (auto& entry : zoo()) rows.push_back({"models", entry.name, "zoo", entry.what});
  if (kind == "runs")
    for (auto& name : list_runs(runs_folder)) {
      const std::string result = runs_folder + "/" + name + "/result.json";
      std::string what = "not finished: huajin resume " + name;
      if (exists(result)) {
        const Json json = read_json(result);
        const auto number = [&](const char* key) {
          return json.contains(key) && json[key].is_number() ? fmt::format("{:.4f}", json[key].get<double>()) : std::string("-");
        };
        what = json.contains("val_accuracy") ? "accuracy " + number("val_accuracy") : "bits per byte " + number("val_bits_per_byte");
      }
      rows.push_back({"runs", name, "", what});
    }
  return rows;
}

}  // namespace

int list_command(const CommandLine& line) {
  const std::vector<std::string> kinds{"techniques", "optimizers", "schedules", "models", "runs"};
  const std::string kind = line.subjects.empty() ? "" : line.subjects.front();
  if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    throw UserError("huajin list " + kind + ": no such list" + suggestion(kind, kinds));
  const auto rows = rows_of(kind, line.runs_folder);
  if (line.json) {
    Json out = Json::array();
    for (auto& row : rows) out.push_back({{"kind", row.kind}, {"name", row.name}, {"box", row.where}, {"what", row.what}});
    fmt::print("{}\n", json_text(out));
    return kExitOk;
  }
  std::string last;
  for (auto& each : kinds)
    for (auto& row : rows) {
      if (row.kind != each) continue;
      if (row.kind != last) fmt::print("{}{}\n", last.empty() ? "" : "\n", row.kind), last = row.kind;
      fmt::print("  {:<20} {:<22} {}\n", row.name, row.where, row.what);
    }
  if (kind.empty()) fmt::print("\nhuajin explain NAME tells more of each.\n");
  return kExitOk;
}

}  // namespace huajin
