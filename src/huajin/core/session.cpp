#include "huajin/core/session.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include "huajin/core/block_execution.h"
#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"
#include "huajin/core/put_back.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

// The parameter that a declared weight becomes: decay and Muon's domain follow from its role.
Parameter describe(const Model::Entry& entry) {
  const WeightOptions& options = entry.weight->options;
  Parameter p;
  p.name = entry.name;
  p.shape = entry.weight->shape;
  p.placement.stages = {0};
  const bool matrix = p.shape.size() >= 2;
  p.trainable = options.trainable && options.role != Role::kStatistic;
  p.decay = matrix && (options.role == Role::kHidden || options.role == Role::kEmbedding || options.role == Role::kHead);
  p.hidden_matrix = matrix && options.role == Role::kHidden;
  return p;
}

}  // namespace

Tensor initial_value(const Weight& weight, std::string_view name, uint64_t seed, at::ScalarType dtype, at::Device device) {
  Tensor value = at::zeros(weight.shape, at::TensorOptions(dtype));
  const Init init = weight.options.init;
  const uint64_t key = mix(seed, static_cast<uint64_t>(Purpose::kInit), hash_name(name));
  if (weight.options.own.defined()) value.copy_(weight.options.own.detach());
  else if (init.kind == Init::kOnes) value.fill_(1);
  else if (init.kind == Init::kNormal) fill_normal(value, key, init.scale);
  else if (init.kind == Init::kUniform) fill_uniform(value, key, init.scale);
  else if (init.kind == Init::kOrthogonal) fill_orthogonal(value, key, init.scale);
  return value.to(device);
}

RunSession::RunSession(std::unique_ptr<Model> model, std::shared_ptr<Source> source, std::vector<std::unique_ptr<Technique>> techniques,
                       std::shared_ptr<Communicator> communicator, SessionOptions options)
    : options_(options), source_(std::move(source)), communicator_(std::move(communicator)), techniques_(std::move(techniques)) {
  table_.model = std::move(model);
}
RunSession::~RunSession() = default;

Needs RunSession::needs() const {
  Needs all = kNothing;
  for (auto& technique : techniques_) all |= technique->needs();
  return all;
}

void RunSession::build() {
  if (built_) throw Error(kExitInternal, "session: build() was called twice");
  if (table_.model->blocks.size() < 2) throw UserError("model: it needs at least two blocks, a body and a head; add the head as a block of its own");
  for (auto& technique : techniques_) technique->setup(*this);
  if (!optimizer_) throw UserError("recipe: no optimizer; give [optimizer] name, for instance adamw");
  if (!schedule_) throw UserError("recipe: no schedule; give [schedule] name, for instance linear");
  make_parameters();
  loader_ = std::make_unique<Loader>(*source_, options_.seed, options_.loader_workers);
  built_ = true;
  if (!execution_) execution_ = std::make_unique<BlockExecution>(*this);
  for (auto& technique : techniques_) technique->start(*this);
}

void RunSession::make_parameters() {
  table_.entries = table_.model->number();
  table_.parameters.clear();
  trainable_.clear();
  for (auto& entry : table_.entries) {
    table_.parameters.push_back(describe(entry));
    Parameter& p = table_.parameters.back();
    p.index = static_cast<int>(table_.parameters.size()) - 1;
    p.value = initial_value(*entry.weight, entry.name, options_.seed, options_.master, options_.device);
  }
  for (auto& p : table_.parameters)
    if (p.trainable) trainable_.push_back(&p);
  if (trainable_.empty()) throw UserError("model: no weight is trainable; unfreeze one");
  for (auto& s : slots_) {
    s.tensors.assign(table_.parameters.size(), Tensor());
    if (s.kind == SlotKind::kValue)
      for (Parameter* p : trainable_) s.tensors[p->index] = p->value.clone();
  }
}

void RunSession::declare_slot(std::string_view owner, SlotKind kind) {
  if (built_) throw Error(kExitInternal, "session: slots are declared in setup(), not later: " + std::string(owner));
  for (auto& s : slots_)
    if (s.owner == owner) throw UserError("recipe: two techniques keep a state named " + std::string(owner) + "; use one of them");
  slots_.push_back({std::string(owner), kind, {}});
}

std::unique_ptr<Model> RunSession::fresh_model() { return model_maker ? model_maker() : nullptr; }

void RunSession::add_transform(Transform transform) { transforms_.push_back(std::move(transform)); }
void RunSession::add_teacher(std::string_view name, std::string_view slot) { teachers_.emplace_back(name, slot); }

void RunSession::add_teacher_folder(std::string_view name, const std::string& folder, std::string_view key) {
  teacher_folders_.push_back({std::string(name), folder, std::string(key)});
}

void RunSession::open_teachers() {
  for (auto& [name, folder, key] : teacher_folders_) {
    if (opened_.count(name)) continue;
    if (!teacher_opener) throw UserError(key + "=\"" + folder + "\": this program gave no way to open another model; set RunSession::teacher_opener");
    Teacher teacher = teacher_opener(folder, key);
    const Batch probe = loader_->draw(Draw{1, source_->classifies() ? 0 : std::min<int64_t>(std::max<int64_t>(table_.model->context, 1), 8)}, Progress{});
    const Tensor inputs = loader_->load(probe, 0).inputs.to(options_.device);
    const int64_t theirs = teacher(inputs).size(-1), ours = execution_->logits(inputs, nullptr, 0).size(-1);
    if (theirs != ours)
      throw UserError(key + "=\"" + folder + "\": it predicts " + std::to_string(theirs) + " classes, this run's model " + std::to_string(ours) + "; both must have the same vocabulary or labels");
    opened_[name] = std::move(teacher);
  }
}

void RunSession::set_optimizer(std::unique_ptr<Optimizer> optimizer) {
  if (optimizer_) throw UserError("recipe: two optimizers; keep one in [optimizer] name");
  optimizer_ = std::move(optimizer);
}
void RunSession::set_schedule(std::unique_ptr<Schedule> schedule) {
  if (schedule_) throw UserError("recipe: two schedules; keep one in [schedule] name");
  schedule_ = std::move(schedule);
}
void RunSession::set_reducer(std::unique_ptr<Reducer> reducer) {
  if (reducer_) throw UserError("recipe: two techniques compress gradients; keep one");
  reducer_ = std::move(reducer);
}

Tensor& RunSession::slot(std::string_view owner, const Parameter& p) {
  for (auto& s : slots_) {
    if (s.owner != owner) continue;
    Tensor& tensor = s.tensors.at(p.index);
    if (!tensor.defined()) tensor = s.kind == SlotKind::kValue ? p.value.clone() : at::zeros_like(p.value);
    return tensor;
  }
  throw Error(kExitInternal, "session: slot " + std::string(owner) + " was not declared in setup()");
}

void RunSession::each_slot(const Parameter& p, FunctionRef<void(SlotKind, Tensor&)> see) {
  for (auto& s : slots_)
    if (s.tensors.at(p.index).defined()) see(s.kind, s.tensors[p.index]);
}

Tensor RunSession::norms(FunctionRef<Tensor(const Parameter&)> slice) {
  std::vector<Tensor> tensors;
  for (Parameter* p : trainable_) tensors.push_back(slice(*p));
  return at::stack(at::_foreach_norm(tensors));
}

void RunSession::take_norm(const Parameter& p) {
  norm_parts_.resize(table_.parameters.size());
  norm_parts_[static_cast<size_t>(p.index)] = at::linalg_vector_norm(p.grad);
}

Tensor RunSession::norm() {
  if (norm_.defined()) return norm_;
  norm_parts_.resize(table_.parameters.size());
  std::vector<Tensor> grads, parts;
  for (Parameter* p : trainable_) {
    const Tensor& part = norm_parts_[static_cast<size_t>(p->index)];
    if (part.defined()) parts.push_back(part);
    else if (p->grad.defined()) grads.push_back(p->grad);
  }
  if (!grads.empty())
    for (auto& part : at::_foreach_norm(grads)) parts.push_back(part);
  if (parts.empty()) return norm_ = at::zeros({}, at::TensorOptions(options_.master).device(options_.device));
  return norm_ = at::stack(parts).to(at::kDouble).norm();
}

Tensor RunSession::amax(const Parameter&, const Tensor& working) { return working.abs().amax(); }

Tensor RunSession::score(const Batch& batch, bool training_mode) { return execution_->score(batch, progress_, training_mode); }

void RunSession::with_fresh_statistics(const Draw& draw, int64_t batches, FunctionRef<void()> next) {
  PutBack statistics;
  for (size_t id = 0; id < table_.entries.size(); ++id)
    if (table_.entries[id].weight->options.momentum > 0) statistics.keep(table_.parameters[id].value);
  if (statistics.empty()) return next();
  std::vector<Batch> drawn;
  Progress at = progress_;
  for (int64_t i = 0; i < batches; ++i) {
    at.examples = i * draw.rows, at.tokens = i * draw.rows * source_->units_per_row(draw.length);
    drawn.push_back(loader_->draw(draw, at));
  }
  execution_->estimate_statistics(drawn, progress_);
  next();
}

Tensor RunSession::all_reduce(Tensor tensor, Axis axis) {
  if (axis == Axis::kData) communicator_->sum(tensor);
  return tensor;
}

void RunSession::roll_back(std::string_view why) {
  if (!on_roll_back) throw UserError("roll back (" + std::string(why) + "): this run keeps no checkpoint; set checkpoint.every");
  on_roll_back(why);
}

// All or nothing: the old table, slots and working copies stay until the new ones have passed.
void RunSession::rebuild(const Rebuild& change) {
  at::NoGradGuard off;
  WeightTable next;
  next.model = change.model();
  next.entries = next.model->number();
  std::vector<Slot> next_slots = slots_;
  for (auto& s : next_slots) s.tensors.assign(next.entries.size(), Tensor());
  for (auto& entry : next.entries) {
    Parameter p = describe(entry);
    p.index = static_cast<int>(next.parameters.size());
    const std::string from = change.source(entry.name);
    const Parameter* old = nullptr;
    for (auto& candidate : table_.parameters)
      if (candidate.name == from) old = &candidate;
    if (!from.empty() && old == nullptr) throw UserError("growth: " + entry.name + " starts from " + from + ", which the model does not have");
    const auto carry = [&](SlotKind kind, const Tensor& tensor) {
      Tensor copy = tensor.clone();
      if (change.change) change.change(kind, entry.name, copy);
      if (copy.sizes() != at::IntArrayRef(p.shape)) throw UserError("growth: " + entry.name + " got another shape than the larger model declares");
      return copy;
    };
    p.value = old ? carry(SlotKind::kValue, old->value) : initial_value(*entry.weight, entry.name, options_.seed, options_.master, options_.device);
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (!p.trainable) continue;
      if (old && slots_[s].tensors[old->index].defined()) next_slots[s].tensors[p.index] = carry(slots_[s].kind, slots_[s].tensors[old->index]);
      else if (slots_[s].kind == SlotKind::kValue) next_slots[s].tensors[p.index] = p.value.clone();
    }
    next.parameters.push_back(std::move(p));
  }
  Batch probe = loader_->draw(Draw{2, std::max<int64_t>(table_.model->context > 0 ? std::min<int64_t>(table_.model->context, 16) : 0, 1)}, Progress{});
  const Tensor before = change.preserves_function ? score(probe, false) : Tensor();
  std::swap(table_, next);
  std::swap(slots_, next_slots);
  const auto relink = [&] {
    trainable_.clear();
    for (auto& p : table_.parameters)
      if (p.trainable) trainable_.push_back(&p);
    gradients_changed();
    execution_->rebuilt();
  };
  relink();
  if (change.preserves_function && (score(probe, false) - before).abs().max().item().toDouble() > 1e-4) {
    std::swap(table_, next);
    std::swap(slots_, next_slots);
    relink();
    throw UserError("growth: the larger model does not compute the same function; the old model stays");
  }
}

}  // namespace huajin
