#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "huajin/core/checkpoint.h"
#include "huajin/core/checkpoint_archive.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

std::string shape_text(at::IntArrayRef shape) {
  std::string text;
  for (int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

// One line, however many there are.
std::string list_of(const std::vector<std::string>& problems) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < problems.size() && i < kShown; ++i) text += (i == 0 ? "" : "; ") + problems[i];
  if (problems.size() > kShown) text += fmt::format("; and {} more", problems.size() - kShown);
  return text;
}

TrainerState state_of(const Json& json, const std::string& where) {
  const auto integer = [&](const char* key) { return integer_member(json, key, where); };
  const auto number = [&](const char* key) { return exact_number(member(json, key, where), where + ": " + key); };
  TrainerState state;
  state.progress = {integer("step"), integer("draw"), integer("examples"), integer("tokens"), number("flops"), number("fraction")};
  state.elapsed_seconds = number("elapsed_seconds");
  state.training_seconds = number("training_seconds");
  state.evaluation_seconds = number("evaluation_seconds");
  state.save_seconds = number("save_seconds");
  state.best_loss = number("best_loss");
  state.skips_in_a_row = integer("skips_in_a_row");
  state.evaluated_step = integer("evaluated_step");
  state.evaluated_loss = number("evaluated_loss");
  return state;
}

ArchivedState archive_in(const Json& json, const Safetensors& tensors, const std::string& where) {
  ArchivedState archive;
  const Json& numbers = member(json, "numbers", where);
  const Json& undefined = member(json, "undefined_tensors", where);
  if (!numbers.is_object() || !undefined.is_array())
    throw DamagedError(fmt::format("{}: its techniques' state is no object; use another checkpoint", where));
  for (const auto& [name, value] : numbers.items()) archive.numbers[name] = exact_number(value, where + ": " + name);
  for (const Json& name : undefined)
    if (name.is_string()) archive.tensors[name.get<std::string>()] = Tensor();
  for (const StoredTensor& stored : tensors.tensors()) {
    if (stored.name.starts_with("technique/")) archive.tensors[stored.name.substr(10)] = to_tensor(stored, where);
    if (stored.name.starts_with("by_rank/")) archive.by_rank[stored.name.substr(8)] = to_tensor(stored, where);
  }
  return archive;
}

// Weights and slots of a checkpoint against those of the session; nothing is changed before everything fits.
class Comparison {
 public:
  Comparison(RunSession& session, std::vector<std::string>& problems) : session_(session), problems_(problems) {}

  void weights(const Safetensors& model) {
    std::set<std::string> known;
    for (Parameter& p : session_.table().parameters) {
      known.insert(p.name);
      const StoredTensor* stored = model.find(p.name);
      if (!stored)
        problems_.push_back("missing weight " + p.name);
      else if (fits(*stored, p))
        copies_.emplace_back(&p.value, stored);
    }
    for (const StoredTensor& stored : model.tensors())
      if (!known.count(stored.name)) problems_.push_back("unexpected weight " + stored.name);
  }
  void slots(const Safetensors& state, const Json& owners) {
    std::set<std::string> known;
    for (Slot& slot : session_.slots()) {
      const auto owner = owners.find(slot.owner);
      if (owner == owners.end())
        problems_.push_back("missing state of " + slot.owner);
      else if (*owner != static_cast<int>(slot.kind))
        problems_.push_back("state of another kind of " + slot.owner);
      for (const Parameter& p : session_.table().parameters) {
        const std::string name = fmt::format("slot/{}/{}", slot.owner, p.name);
        known.insert(name);
        Tensor& tensor = slot.tensors.at(static_cast<size_t>(p.index));
        const StoredTensor* stored = state.find(name);
        if (!stored)
          cleared_.push_back(&tensor);  // it was not used yet
        else if (fits(*stored, p))
          copies_.emplace_back(&tensor, stored);
      }
    }
    for (const auto& [owner, kind] : owners.items())
      if (std::none_of(session_.slots().begin(), session_.slots().end(), [&](const Slot& s) { return s.owner == owner; }))
        problems_.push_back("unexpected state of " + owner);
    for (const StoredTensor& stored : state.tensors())
      if (stored.name.starts_with("slot/") && !known.count(stored.name) && owners.contains(stored.name.substr(5, stored.name.find('/', 5) - 5)))
        problems_.push_back("unexpected " + stored.name);
  }
  void apply() {
    for (Tensor* tensor : cleared_) *tensor = Tensor();
    for (auto& [tensor, stored] : copies_) {
      const Tensor value = to_tensor(*stored, "checkpoint");
      // In place where there is a tensor: working copies and observers may hold it.
      if (tensor->defined() && tensor->sizes() == value.sizes() && tensor->scalar_type() == value.scalar_type())
        tensor->copy_(value);
      else
        *tensor = value.to(session_.device());
    }
  }

 private:
  bool fits(const StoredTensor& stored, const Parameter& p) {
    const bool same_shape = at::IntArrayRef(stored.shape) == at::IntArrayRef(p.shape);
    if (!same_shape)
      problems_.push_back(fmt::format("{} is {}, {} is needed", stored.name, shape_text(stored.shape), shape_text(p.shape)));
    else if (stored.dtype != stored_dtype(session_.options().master))
      problems_.push_back(fmt::format("{} is {}, {} is needed (precision)", stored.name, stored.dtype, stored_dtype(session_.options().master)));
    else
      return true;
    return false;
  }
  RunSession& session_;
  std::vector<std::string>& problems_;
  std::vector<std::pair<Tensor*, const StoredTensor*>> copies_;
  std::vector<Tensor*> cleared_;
};

}  // namespace

CheckpointFacts checkpoint_facts(const OpenCheckpoint& checkpoint) {
  const std::string where = checkpoint.path() + "/state.json";
  const Json json = parse_json(checkpoint.state_json(), where);
  const int64_t seed = integer_member(json, "seed", where);
  return {state_of(member(json, "state", where), where), string_member(json, "recipe", where), string_member(json, "recipe_hash", where),
          string_member(json, "weights_hash", where),    static_cast<uint64_t>(seed),          integer_member(json, "ranks", where),
          integer_member(json, "threads", where)};
}

void restore_session(RunSession& session, TrainerState& state, const OpenCheckpoint& checkpoint) {
  at::NoGradGuard off;
  const std::string where = checkpoint.path() + "/state.json";
  const Json json = parse_json(checkpoint.state_json(), where);
  const Json& owners = member(json, "slots", where);
  const CheckpointFacts facts = checkpoint_facts(checkpoint);
  const ArchivedState archive = archive_in(json, checkpoint.state(), where), before = archive_of(session);
  std::vector<std::string> problems, notes;
  if (facts.seed != session.seed()) problems.push_back(fmt::format("seed is {}, the run has {}", facts.seed, session.seed()));
  restore_archive(session, archive, problems, notes);
  Comparison comparison(session, problems);
  comparison.weights(checkpoint.model());
  comparison.slots(checkpoint.state(), owners);
  if (!problems.empty()) {
    std::vector<std::string> ignored;
    restore_archive(session, before, ignored, ignored);
    throw UserError(fmt::format(
        "{}: is a checkpoint of another model or recipe: {}; resume with the recipe that wrote it, or take only its weights (--init-from {}/model)",
        checkpoint.path(), list_of(problems), checkpoint.path()));
  }
  for (const std::string& note : notes) std::fprintf(stderr, "huajin: warning: %s\n", note.c_str());
  comparison.apply();
  state = facts.state;
  session.progress() = state.progress;
  session.gradients_changed();
  session.execution().rebuilt();
}

}  // namespace huajin
