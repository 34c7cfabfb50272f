// huajin verify RUN: reads and hashes every byte of a run's checkpoints.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/progress.h"
#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/json.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

std::vector<std::string> checkpoints_of(const std::string& given, const std::string& runs) {
  if (exists(given + "/manifest.json")) return {given};
  for (auto& folder : {given, given + "/checkpoints"})
    if (is_folder(folder))
      if (auto found = list_checkpoints(folder); !found.empty()) return found;
  return list_checkpoints(find_run(runs, given) + "/checkpoints");
}

}  // namespace

int verify_command(const CommandLine& line) {
  const auto checkpoints = checkpoints_of(line.subjects.front(), line.runs_folder);
  if (checkpoints.empty()) throw UserError(line.subjects.front() + ": has no checkpoint to verify; name a run or a checkpoint folder");
  Json report = Json::array();
  std::string first_wrong;
  for (auto& path : checkpoints) {
    const CheckpointCheck check = verify_checkpoint(path);
    report.push_back({{"checkpoint", path},
                      {"good", check.good()},
                      {"bytes", check.bytes},
                      {"tensors", check.tensors},
                      {"files", check.files},
                      {"wrong", check.wrong},
                      {"strangers", check.strangers}});
    if (!check.good() && first_wrong.empty()) first_wrong = path + ": " + check.wrong.front();
    if (line.json) continue;
    fmt::print("{}: {}, {}bytes in {} files and {} tensors proven\n", path, check.good() ? "good" : "DAMAGED",
               count_text(static_cast<double>(check.bytes)) + " ", check.files, check.tensors);
    for (auto& wrong : check.wrong) fmt::print("  {}\n", wrong);
    for (auto& stranger : check.strangers) fmt::print("  {}: not in the manifest, not proven\n", stranger);
  }
  if (line.json) fmt::print("{}\n", json_text(report));
  if (!first_wrong.empty()) throw DamagedError(first_wrong + "; use an older checkpoint, or huajin resume, which skips damaged ones");
  return kExitOk;
}

}  // namespace huajin
