// huajin resume RUN: goes on where the newest good checkpoint stands.
#include <filesystem>

#include "app/commands.h"
#include "app/finish.h"
#include "app/setup.h"
#include "huajin/core/budget.h"
#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/run_folder.h"

namespace huajin {

int resume_command(const CommandLine& line) {
  const std::string path = find_run(line.runs_folder, line.subjects.front());
  CommandLine again = line;
  again.recipe = path + "/recipe.toml";
  again.sets.clear();
  Prepared prepared = prepare(again);
  std::unique_ptr<RunFolder> folder;
  if (prepared.rank() == 0) folder = std::make_unique<RunFolder>(RunFolder::open(path));  // holds its lock
  const FoundCheckpoint found = newest_good_checkpoint(path + "/checkpoints");            // before anything is opened: it reads at the disk's speed
  if (found.path.empty() && found.skipped.empty())
    throw UserError(path + ": has no checkpoint to resume from; start it again with huajin train --recipe " + again.recipe);
  if (found.path.empty()) throw DamagedError(path + ": every checkpoint is damaged, the newest: " + found.skipped.front());
  Run run(prepared.recipe, inputs_of(prepared.recipe, cache_folder(line)), RunPlace{line.device, path + "/checkpoints", "", prepared.communicator});
  if (folder && !line.budget.empty()) folder->write("recipe.toml", run.recipe().resolved());
  return fit_and_report(run, path, line, FitOptions{prepared.rank(), true, false});
}

}  // namespace huajin
