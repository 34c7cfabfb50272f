// Techniques' state on its way to and from a checkpoint: numbers into JSON, tensors into safetensors.
#pragma once
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "huajin/core/communicator.h"
#include "huajin/core/technique.h"
#include "huajin/io/json.h"

namespace huajin {

// All of it in memory: what is written to a checkpoint, what one holds, and the copy to fall back on.
struct ArchivedState {
  std::map<std::string, double> numbers;  // "TECHNIQUE/NAME"
  std::map<std::string, Tensor> tensors;  // the same keys; undefined tensors are kept as such
  std::map<std::string, Tensor> by_rank;  // [ranks, ...]
};
// Runs serialize() of every technique and of the execution. Tensors are copies. Collective (rank tensors are gathered).
ArchivedState archive_of(class RunSession& session);
// The way back. Missing names and names that nobody asked for go to `problems`; `notes` says what a change of ranks leaves fresh.
void restore_archive(class RunSession& session, const ArchivedState& state, std::vector<std::string>& problems, std::vector<std::string>& notes);

// A number that JSON has not (inf, nan) becomes text; both ways exact.
Json exact_number(double value);
double exact_number(const Json& value, const std::string& where);

}  // namespace huajin
