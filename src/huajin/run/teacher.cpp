#include "huajin/run/teacher.h"

#include <fmt/format.h>

#include <filesystem>

#include "huajin/core/checkpoint.h"
#include "huajin/core/errors.h"
#include "huajin/core/registry.h"
#include "huajin/io/file.h"
#include "huajin/io/tokenizer.h"
#include "huajin/run/model.h"

namespace huajin {
namespace {

// The folder itself, or that of a run of this name beside this run's.
std::string teacher_folder(const std::string& given, const RunPlace& place) {
  if (exists(given) || place.checkpoints.empty()) return given;
  const std::string beside = (std::filesystem::path(place.checkpoints).parent_path().parent_path() / given).string();
  return exists(beside) ? beside : given;
}

std::string teacher_checkpoint(const std::string& folder) {
  if (exists(folder + "/manifest.json")) return folder;
  if (!exists(folder + "/checkpoints")) return "";
  const FoundCheckpoint found = newest_good_checkpoint(folder + "/checkpoints");
  if (!found.path.empty()) return found.path;
  if (found.skipped.empty()) throw UserError(folder + ": has no checkpoint; train it first, or name another run");
  throw DamagedError(folder + ": every checkpoint is damaged, the newest: " + found.skipped.front());
}

void check_tokenizer(const std::string& folder, const RunInputs& inputs) {
  if (inputs.images || !inputs.tokenizer) return;
  if (!exists(folder + "/tokenizer.json")) return;  // a model of somebody else's: only its vocabulary can be compared
  const auto theirs = load_tokenizer(folder);
  if (theirs->vocabulary() != inputs.tokenizer->vocabulary())
    throw UserError(fmt::format("{}: a vocabulary of {} tokens, this run's data has {}; use the same with data.tokenizer_folder=\"{}\"", folder, theirs->vocabulary(),
                                inputs.tokenizer->vocabulary(), folder));
  if (theirs->files() != inputs.tokenizer->files())
    throw UserError(fmt::format("{}: another tokenizer of the same size, so the same number is another token; use its own with data.tokenizer_folder=\"{}\"", folder, folder));
}

// Logits in float32 or wider; `owner` keeps what the session needs.
template <class Owner>
Teacher teacher_of(std::shared_ptr<Owner> owner, RunSession& session) {
  return [owner, &session](const Tensor& inputs) { return session.execution().logits(inputs, nullptr, 0); };
}

// As the run built it: surgery of its techniques is part of the model. Its own teacher, if it had one, is not opened: nobody trains here.
Teacher teacher_of_checkpoint(const std::string& checkpoint, const Recipe& recipe, const RunInputs& inputs, const RunPlace& place) {
  const OpenCheckpoint opened(checkpoint);
  check_tokenizer(checkpoint + "/model", inputs);
  Recipe theirs = Recipe::read(checkpoint_facts(opened).recipe, checkpoint + ": recipe");
  theirs.layout.data = 0;
  theirs.run.precision = recipe.run.precision;
  if (!inputs.images && theirs.batch.length < recipe.batch.length)
    throw UserError(fmt::format("{}: was trained on {} tokens a row; take batch.length={} or less", checkpoint, theirs.batch.length, theirs.batch.length));
  auto run = std::make_shared<Run>(theirs, inputs, RunPlace{place.device, "", "", nullptr});
  TrainerState state;
  restore_session(run->session(), state, opened);
  for (Slot& slot : run->session().slots()) slot.tensors.assign(slot.tensors.size(), Tensor());  // it never learns: no moments
  return teacher_of(run, run->session());
}

Teacher teacher_of_model(const std::string& folder, const Recipe& recipe, const RunInputs& inputs, const RunPlace& place) {
  check_tokenizer(folder, inputs);
  Recipe theirs;
  theirs.batch.length = recipe.batch.length;
  theirs.run.precision = recipe.run.precision;
  theirs.budget.limit = "1000000step";
  auto run = std::make_shared<Run>(theirs, inputs, RunPlace{place.device, "", folder, nullptr});
  return teacher_of(run, run->session());
}

}  // namespace

Teacher open_teacher(const std::string& given, const std::string& key, const Recipe& recipe, const RunInputs& inputs, const RunPlace& place) {
  const std::string folder = teacher_folder(given, place);
  const std::string where = fmt::format("{}=\"{}\": ", key, given);
  try {
    if (!exists(folder)) throw UserError("no such folder; give a run, one of its checkpoints, or a folder with config.json and model.safetensors");
    const std::string checkpoint = teacher_checkpoint(folder);
    if (!checkpoint.empty()) return teacher_of_checkpoint(checkpoint, recipe, inputs, place);
    if (!exists(folder + "/config.json"))
      throw UserError("neither a run nor a model; give a run, one of its checkpoints, or a folder with config.json and model.safetensors");
    if (inputs.images) throw UserError("a model's folder can teach text only; give the run that trained it");
    return teacher_of_model(folder, recipe, inputs, place);
  } catch (const DamagedError& error) {
    throw DamagedError(where + error.what());
  } catch (const UserError& error) {
    throw UserError(where + error.what());
  }
}

}  // namespace huajin
