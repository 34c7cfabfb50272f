// huajin report RUN...: curves, results and recipes of runs as one HTML file that needs no network.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands.h"
#include "app/report_page.h"
#include "app/run_files.h"
#include "huajin/core/errors.h"
#include "huajin/io/file.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

constexpr size_t kMostRuns = 8;  // as many as there are colours that can be told apart

std::vector<Json> log_of(const std::string& path) {
  std::vector<Json> lines;
  if (!exists(path)) return lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    Json parsed = Json::parse(line, nullptr, false);  // a run that was killed may end in half a line
    if (parsed.is_object()) lines.push_back(std::move(parsed));
  }
  return lines;
}

}  // namespace

int report_command(const CommandLine& line) {
  if (line.subjects.size() > kMostRuns)
    throw UserError(fmt::format("report: {} runs; at most {} can be told apart in one picture: name fewer", line.subjects.size(), kMostRuns));
  std::vector<ReportedRun> runs;
  std::string first;
  for (auto& subject : line.subjects) {
    const std::string folder = find_run(line.runs_folder, subject);
    if (first.empty()) first = folder;
    ReportedRun run{subject, nullptr, recipe_keys(folder), log_of(folder + "/log.jsonl")};
    if (exists(folder + "/result.json")) run.result = read_json(folder + "/result.json");
    if (run.log.empty()) throw UserError(folder + ": no step is in its log.jsonl, so there is nothing to show; huajin resume " + subject + " goes on with it");
    runs.push_back(std::move(run));
  }
  const std::string out = line.output.empty() ? first + "/report.html" : line.output;
  write_atomically(out, report_page(runs));
  if (line.json) fmt::print("{}\n", json_text(Json{{"report", out}}));
  else fmt::print("report {}\n", out);
  return kExitOk;
}

}  // namespace huajin
