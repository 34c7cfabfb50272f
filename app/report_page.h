// The page that `huajin report` writes: one HTML file, everything inline.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "app/chart.h"
#include "huajin/io/json.h"

namespace huajin {

struct ReportedRun {
  std::string name;
  Json result;                                // result.json; null: the run has not ended
  std::map<std::string, std::string> recipe;  // "batch.rows" -> "8"
  std::vector<Json> log;                      // lines of log.jsonl
};

// Keys whose values are not the same in all runs, with the values ("-": absent).
std::map<std::string, std::vector<std::string>> recipe_differences(const std::vector<ReportedRun>& runs);

std::string report_page(const std::vector<ReportedRun>& runs);

}  // namespace huajin
