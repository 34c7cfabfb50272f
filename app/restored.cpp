#include "app/restored.h"

#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/file.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

// Stands in for the data where only the model is used.
class NoData : public Source {
 public:
  explicit NoData(int64_t vocabulary) : vocabulary_(vocabulary) {}
  bool classifies() const override { return false; }
  int64_t size() const override { return int64_t{1} << 40; }
  int64_t classes() const override { return vocabulary_; }
  Tensor ids(uint64_t, int64_t, int64_t, int64_t) const override {
    throw Error(kExitInternal, "a model that was opened without data was asked to train");
  }
  int64_t units_per_row(int64_t length) const override { return length; }
  Examples load(const Tensor&, int64_t, const Tensor&, int64_t, bool) const override {
    throw Error(kExitInternal, "a model that was opened without data was asked to train");
  }

 private:
  int64_t vocabulary_;
};

}  // namespace

std::string checkpoint_of(const CommandLine& line, const std::string& given) {
  if (exists(given + "/manifest.json")) return given;
  const std::string run = find_run(line.runs_folder, given);
  const FoundCheckpoint found = newest_good_checkpoint(run + "/checkpoints");
  if (!found.path.empty()) {
    for (auto& skipped : found.skipped) std::fprintf(stderr, "huajin: warning: skipped a damaged checkpoint: %s\n", skipped.c_str());
    return found.path;
  }
  if (found.skipped.empty()) throw UserError(run + ": has no checkpoint; train it first");
  throw DamagedError(run + ": every checkpoint is damaged, the newest: " + found.skipped.front());
}

std::unique_ptr<Run> restored_run(const CommandLine& line, const std::string& checkpoint, std::unique_ptr<RunInputs> inputs) {
  const OpenCheckpoint opened(checkpoint);
  const CheckpointFacts facts = checkpoint_facts(opened);
  Recipe recipe = Recipe::read(facts.recipe, checkpoint + ": recipe");
  if (inputs == nullptr) {
    if (!exists(checkpoint + "/model/tokenizer.json"))
      throw UserError(checkpoint + ": has no tokenizer: it classifies images and cannot write text; use huajin eval");
    inputs = std::make_unique<RunInputs>();
    inputs->tokenizer = load_tokenizer(checkpoint + "/model");
    inputs->classes = inputs->tokenizer->vocabulary();
    inputs->train = std::make_shared<NoData>(inputs->classes);
    inputs->train_units = int64_t{1} << 40;
  }
  auto run = std::make_unique<Run>(recipe, std::move(*inputs), RunPlace{line.device, "", "", nullptr});
  TrainerState state;
  restore_session(run->session(), state, opened);
  return run;
}

}  // namespace huajin
