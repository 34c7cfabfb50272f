// result.json: what a run cost and reached.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "huajin/io/json.h"
#include "huajin/run/run.h"

namespace huajin {

// `before`: seconds of earlier parts of a resumed run. Every number is finite or null.
Json result_json(Run& run, const Result& result, const std::string& run_name, double before);
// For people: a few lines.
std::string result_text(Run& run, const Result& result, const std::string& run_folder);

}  // namespace huajin
