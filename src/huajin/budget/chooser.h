// `huajin train` without a recipe: from the data, the budget and the measured machine to a recipe. Pure, but for the two functions that look.
#pragma once
#include <string>
#include <vector>

#include "huajin/budget/machine.h"
#include "huajin/core/budget.h"
#include "huajin/core/recipe.h"

namespace huajin {

struct DataFacts {
  bool images = false;
  bool digits = false;  // IDX files: grey, and not the same when mirrored
  double bytes = 0;     // of all files
  bool utf8 = true;     // of the first megabyte: valid, and without NUL
  double distinct = 0;  // characters in it
  int64_t side = 0;     // shorter side of the first image in a class folder; 0: not known
};
// Looks at names, sizes and the first megabyte. Never throws for what is wrong with the data: opening it says that better.
DataFacts inspect_data(const DataSettings& data);

struct Choosing {
  Recipe recipe;
  std::vector<std::string> reasons;  // five lines
};
// Keeps what `start` says about data, budget and seed and decides the rest.
Choosing choose(Recipe start, const DataFacts& facts, const Limits& limits, const Machine& machine);

// The budget in seconds of this machine: what is given in steps, tokens or FLOPs by what a small model does a second.
double budget_in_seconds(const Limits& limits, const DataFacts& facts, const Machine& machine);

}  // namespace huajin
