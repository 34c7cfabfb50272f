// huajin train: from data and a budget to a verified checkpoint.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/finish.h"
#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

// A run folder that was made for a run that never began is taken away again.
class NewFolder {
 public:
  NewFolder(const std::string& runs, const std::string& name) : folder_(RunFolder::create(runs, name)) {}
  ~NewFolder() {
    if (!begun_) remove_tree(folder_.path());
  }
  RunFolder& get() { return folder_; }
  void begin() { begun_ = true; }

 private:
  RunFolder folder_;
  bool begun_ = false;
};

// Only once all is validated: what is wrong is said in one line, with nothing before it.
void say_plan(const Prepared& prepared, const RunInputs& inputs, const CommandLine& line) {
  if (prepared.rank() != 0) return;
  if (!inputs.warning.empty()) std::fprintf(stderr, "huajin: %s\n", inputs.warning.c_str());
  if (line.quiet) return;
  std::fprintf(stderr, "%s\n", inputs.summary.c_str());
  for (auto& reason : prepared.reasons) std::fprintf(stderr, "%s\n", reason.c_str());
}

}  // namespace

int train_command(const CommandLine& line) {
  Prepared prepared = prepare(line);
  std::unique_ptr<NewFolder> made;
  std::string path;
  if (prepared.rank() == 0) made = std::make_unique<NewFolder>(line.runs_folder, line.run), path = made->get().path();
  if (prepared.communicator) prepared.communicator->broadcast(path, 0);
  Run run(prepared.recipe, inputs_of(prepared.recipe, cache_folder(line)), RunPlace{line.device, path + "/checkpoints", line.init_from, prepared.communicator});
  if (prepared.rank() == 0) run.trainer().require_time();
  if (made) made->get().write("recipe.toml", run.recipe().resolved()), made->begin();
  say_plan(prepared, run.inputs(), line);
  return fit_and_report(run, path, line, FitOptions{prepared.rank(), false, prepared.recipe.data.path.empty()});
}

}  // namespace huajin
