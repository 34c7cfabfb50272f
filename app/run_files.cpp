#include "app/run_files.h"

#include <sstream>

#include "huajin/io/file.h"
#include "huajin/io/run_folder.h"

namespace huajin {

std::map<std::string, std::string> recipe_keys(const std::string& folder) {
  std::map<std::string, std::string> keys;
  if (!exists(folder + "/recipe.toml")) return keys;
  std::istringstream lines(read_file(folder + "/recipe.toml"));  // resolved: one key a line
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      table = line.substr(1, line.find(']') - 1) + ".";
      continue;
    }
    const size_t equals = line.find(" = ");
    if (equals != std::string::npos) keys[table + line.substr(0, equals)] = line.substr(equals + 3);
  }
  return keys;
}

}  // namespace huajin
