// What a run folder holds, for commands that look at runs without a model.
#pragma once
#include <map>
#include <string>

namespace huajin {

// "batch.rows" -> "8": the keys of the run's recipe.toml, as they are written there. Empty without the file.
std::map<std::string, std::string> recipe_keys(const std::string& folder);

}  // namespace huajin
