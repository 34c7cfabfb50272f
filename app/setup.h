// What the commands that train share: from the command line to a recipe, and where things are.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "huajin/core/communicator.h"
#include "huajin/core/recipe.h"
#include "huajin/run/run.h"

namespace huajin {

// ${--cache-dir, HUAJIN_CACHE, ~/.cache/huajin}: holds only what can be made again.
std::string cache_folder(const CommandLine& line);

struct Prepared {
  Recipe recipe;                               // checked: every table and technique exists, defaults written out
  std::vector<std::string> reasons;            // why, if huajin chose it
  std::shared_ptr<Communicator> communicator;  // null: one process
  int threads = 1;
  int rank() const { return communicator ? communicator->rank() : 0; }
};
// Recipe file, or the chooser's, then options, then --set in order. The ranks of a run all get rank 0's.
Prepared prepare(const CommandLine& line);

// The data that the recipe names, the embedded default where it names none.
RunInputs inputs_of(const Recipe& recipe, const std::string& cache);

// UserError with the nearest name for a technique, optimizer, schedule or model that this build has not; writes defaults of all of them.
void complete_recipe(Recipe& recipe);

// auto, cpu or cuda. UserError where there is no CUDA.
at::Device device_of(const std::string& name);

double peak_rss_mb();

}  // namespace huajin
