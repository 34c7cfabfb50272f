// huajin check: everything a run would do, once, and no file left: build, 2 steps, 1 evaluation, 1 save, 1 load, and the load must give the same
// weights.
#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/progress.h"
#include "app/setup.h"
#include "huajin/core/checkpoint.h"
#include "huajin/core/errors.h"
#include "huajin/io/file.h"
#include "huajin/io/json.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

// A folder that is gone when the check ends, however it ends. On the disk that the run would use: that is the one that may be full or read-only.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& parent) {
    std::string near = parent;
    while (!exists(near)) {
      const auto up = std::filesystem::path(near).parent_path().string();
      near = up.empty() ? "." : up;
    }
    path_ = near + "/.huajin-check-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) throw UserError(near + ": cannot be written; choose another folder with --runs-dir");
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_, failed_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::error_code failed_;
};

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

int check_command(const CommandLine& line) {
  Prepared prepared = prepare(line);
  const ScratchFolder scratch(line.runs_folder);
  RunInputs inputs = inputs_of(prepared.recipe, cache_folder(line));
  const std::string summary = inputs.summary;
  Run run(prepared.recipe, std::move(inputs), RunPlace{line.device, scratch.path() + "/checkpoints", line.init_from, prepared.communicator});
  std::vector<double> steps;
  for (int i = 0; i < 2; ++i) steps.push_back(seconds_of([&] { run.trainer().step(); }));
  const double first_loss = run.trainer().last_loss();
  if (run.trainer().last_skipped())
    throw UserError(fmt::format("step 2: a loss or gradient is not finite ({}); lower optimizer.learning_rate", first_loss));
  Evaluation evaluation;
  const double evaluating = seconds_of([&] { evaluation = run.trainer().evaluate(); });
  const std::string before = weights_hash(run.session().table());
  TrainerState state = run.trainer().state();
  const double saving = seconds_of([&] {
    if (run.keeper()->save(run.session(), state, true).empty())
      throw UserError(line.runs_folder + ": a checkpoint could not be written there; choose another folder with --runs-dir");
  });
  const double loading = seconds_of([&] { run.keeper()->load_newest(run.session(), state); });
  if (weights_hash(run.session().table()) != before) throw Error(kExitInternal, "check: the loaded checkpoint has other weights than the saved one");
  if (prepared.rank() != 0) return kExitOk;
  if (line.json) {
    fmt::print("{}\n", json_text(Json{{"good", true},
                                      {"parameters", run.parameters()},
                                      {"seconds_step", steps[1]},
                                      {"seconds_evaluation", evaluating},
                                      {"seconds_save", saving},
                                      {"seconds_load", loading},
                                      {"loss", first_loss},
                                      {"val_loss", evaluation.loss},
                                      {"recipe", run.recipe().resolved()}}));
    return kExitOk;
  }
  fmt::print("{}\n", summary);
  for (auto& reason : prepared.reasons) fmt::print("{}\n", reason);
  fmt::print("good: {} parameters; 2 steps ({:.3f} s the second), evaluation {:.2f} s, save {:.2f} s, load {:.2f} s; nothing was left on the disk\n",
             count_text(run.parameters()), steps[1], evaluating, saving, loading);
  return kExitOk;
}

}  // namespace huajin
