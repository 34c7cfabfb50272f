#include "huajin/core/checkpoint.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "huajin/core/checkpoint_archive.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

constexpr std::pair<at::ScalarType, std::string_view> kStoredDtypes[] = {{at::kFloat, "F32"},
                                                                         {at::kDouble, "F64"},
                                                                         {at::kHalf, "F16"},
                                                                         {at::kBFloat16, "BF16"},
                                                                         {at::kLong, "I64"},
                                                                         {at::kInt, "I32"},
                                                                         {at::kShort, "I16"},
                                                                         {at::kChar, "I8"},
                                                                         {at::kByte, "U8"},
                                                                         {at::kBool, "BOOL"},
                                                                         {at::kFloat8_e4m3fn, "F8_E4M3"},
                                                                         {at::kFloat8_e5m2, "F8_E5M2"},
                                                                         {at::kComplexFloat, "C64"}};

// Tensors to store with the memory that they lie in.
class Collected {
 public:
  void add(std::vector<TensorToStore>& list, std::string name, const Tensor& tensor) {
    kept_.push_back(tensor.detach().cpu().contiguous());  // no copy for a plain tensor on the CPU
    const Tensor& t = kept_.back();
    list.push_back({std::move(name), stored_dtype(t.scalar_type()), t.sizes().vec(), t.const_data_ptr(), t.nbytes()});
  }

 private:
  std::vector<Tensor> kept_;
};

Json json_of(const TrainerState& state) {
  const Progress& p = state.progress;
  return {{"step", p.step},
          {"draw", p.draw},
          {"examples", p.examples},
          {"tokens", p.tokens},
          {"flops", exact_number(p.flops)},
          {"fraction", exact_number(p.fraction)},
          {"elapsed_seconds", exact_number(state.elapsed_seconds)},
          {"training_seconds", exact_number(state.training_seconds)},
          {"evaluation_seconds", exact_number(state.evaluation_seconds)},
          {"save_seconds", exact_number(state.save_seconds)},
          {"best_loss", exact_number(state.best_loss)},
          {"skips_in_a_row", state.skips_in_a_row},
          {"evaluated_step", state.evaluated_step},
          {"evaluated_loss", exact_number(state.evaluated_loss)}};
}

void add_archive(const ArchivedState& archive, Collected& collected, CheckpointContent& content, Json& json) {
  Json& numbers = json["numbers"] = Json::object();
  Json& undefined = json["undefined_tensors"] = Json::array();
  for (const auto& [name, value] : archive.numbers) numbers[name] = exact_number(value);
  for (const auto& [name, tensor] : archive.tensors) {
    if (tensor.defined())
      collected.add(content.state, "technique/" + name, tensor);
    else
      undefined.push_back(name);
  }
  for (const auto& [name, tensor] : archive.by_rank) collected.add(content.state, "by_rank/" + name, tensor);
}

void add_slots(RunSession& session, Collected& collected, CheckpointContent& content, Json& json) {
  Json& slots = json["slots"] = Json::object();
  for (const Slot& slot : session.slots()) {
    slots[slot.owner] = static_cast<int>(slot.kind);
    for (const Parameter& p : session.table().parameters)
      if (const Tensor& tensor = slot.tensors.at(static_cast<size_t>(p.index)); tensor.defined())
        collected.add(content.state, fmt::format("slot/{}/{}", slot.owner, p.name), tensor);
  }
}

// What goes into the folder. `collected` holds the memory.
CheckpointContent content_of(RunSession& session, const TrainerState& state, const KeeperOptions& options, Collected& collected) {
  CheckpointContent content;
  content.step = state.progress.step;
  if (state.evaluated_step == state.progress.step) content.score = state.evaluated_loss;
  for (const Parameter& p : session.table().parameters) collected.add(content.model, p.name, p.value);
  content.model_files = options.model_files;
  if (const std::string& config = session.model().config_json; !config.empty()) content.model_files["config.json"] = config;

  Json json = {{"state", json_of(state)},
               {"recipe", options.recipe},
               {"recipe_hash", xxh3_hex(options.recipe)},
               {"seed", session.seed()},
               {"ranks", session.communicator().ranks()},
               {"threads", at::get_num_threads()},
               {"weights_hash", weights_hash(session.table())}};
  add_slots(session, collected, content, json);
  add_archive(archive_of(session), collected, content, json);
  content.state_json = json_text(json, 1) + "\n";
  return content;
}

}  // namespace

std::string stored_dtype(at::ScalarType type) {
  for (const auto& [ours, stored] : kStoredDtypes)
    if (ours == type) return std::string(stored);
  throw Error(kExitInternal, fmt::format("checkpoint: tensors of type {} can't be stored", c10::toString(type)));
}
at::ScalarType tensor_dtype(std::string_view stored, const std::string& where) {
  for (const auto& [ours, name] : kStoredDtypes)
    if (name == stored) return ours;
  throw DamagedError(fmt::format("{}: tensors of type {} are not supported; convert the file to F32, F16 or BF16", where, stored));
}
Tensor to_tensor(const StoredTensor& stored, const std::string& where) {
  Tensor tensor = at::empty(stored.shape, at::TensorOptions(tensor_dtype(stored.dtype, where)));
  if (!stored.data.empty()) std::memcpy(tensor.mutable_data_ptr(), stored.data.data(), stored.data.size());
  return tensor;
}

std::string weights_hash(const WeightTable& table) {
  Hasher hasher;
  for (const Parameter& p : table.parameters) {
    const Tensor value = p.value.detach().cpu().contiguous();
    hasher.update(p.name);
    hasher.update(std::string_view("\0", 1));
    hasher.update(stored_dtype(value.scalar_type()));
    for (int64_t size : value.sizes()) hasher.update(size);
    hasher.update(Bytes(static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()));
  }
  return hasher.hex();
}

void CheckpointKeeper::note(const std::string& warning) const {
  if (options_.note)
    options_.note(warning);
  else
    std::fprintf(stderr, "huajin: warning: %s\n", warning.c_str());
}

std::string CheckpointKeeper::save(RunSession& session, const TrainerState& state, bool) {
  at::NoGradGuard off;
  Collected collected;
  const CheckpointContent content = content_of(session, state, options_, collected);
  std::string path;
  if (session.communicator().rank() == 0) path = save_here(content);
  if (session.communicator().ranks() > 1) session.communicator().broadcast(path, 0);
  return path;
}

std::string CheckpointKeeper::save_here(const CheckpointContent& content) {
  try {
    const std::string path = save_checkpoint(options_.checkpoints, content);
    try {
      retire_checkpoints(options_.checkpoints, options_.keep);
    } catch (const Error& e) {
      note(fmt::format("old checkpoints stay: {}", e.what()));
    }
    return path;
  } catch (const WriteError& e) {
    note(fmt::format("no checkpoint of step {}, training goes on: {}", content.step, e.what()));
    return "";
  }
}

void CheckpointKeeper::require_room(RunSession& session) const {
  // Before the first step most slots do not exist yet: each may come to the size of the trainable weights.
  uint64_t weights = 0, trainable = 0;
  for (const Parameter& p : session.table().parameters) {
    weights += p.value.nbytes();
    if (p.trainable) trainable += p.value.nbytes();
  }
  const uint64_t one = weights + trainable * session.slots().size() + (uint64_t{1} << 20);
  if (session.communicator().rank() == 0)
    require_free_disk(options_.checkpoints, one * static_cast<uint64_t>(options_.keep + 2), fmt::format("keeping {} checkpoints", options_.keep));
}

bool CheckpointKeeper::load_newest(RunSession& session, TrainerState& state) {
  auto& communicator = session.communicator();
  FoundCheckpoint found;
  if (communicator.rank() == 0) found = newest_good_checkpoint(options_.checkpoints);
  for (const std::string& skipped : found.skipped) note("skipped a damaged checkpoint: " + skipped);
  if (communicator.ranks() > 1) communicator.broadcast(found.path, 0);
  if (found.path.empty()) {
    if (!found.skipped.empty()) throw DamagedError(fmt::format("{}: no checkpoint is whole; {}", options_.checkpoints, found.skipped.front()));
    return false;
  }
  restore_session(session, state, OpenCheckpoint(found.path));
  return true;
}

}  // namespace huajin
