#include "huajin/core/block_execution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "huajin/core/errors.h"
#include "huajin/core/logits.h"
#include "huajin/core/rng.h"
#include "huajin/core/session.h"

namespace huajin {
namespace {

Tensor slice(const Tensor& t, int64_t begin, int64_t end) { return t.defined() ? t.slice(0, begin, end) : t; }

Batch slice_rows(const Batch& batch, int64_t begin, int64_t end) {
  Batch part = batch;
  for (Tensor* t : {&part.id, &part.weight, &part.partner, &part.input_mix, &part.target_mix, &part.noise}) *t = slice(*t, begin, end);
  for (auto& [name, t] : part.extra) t = slice(t, begin, end);
  return part;
}

// mask x weight of each item, in the shape of `items`; undefined: ones.
Tensor item_weights(const Examples& in, at::IntArrayRef shape, at::ScalarType dtype) {
  Tensor w = in.mask.defined() ? in.mask.to(dtype) : Tensor();
  if (in.index.weight.defined()) {
    Tensor by_row = in.index.weight.to(dtype);
    while (by_row.dim() < static_cast<int64_t>(shape.size())) by_row = by_row.unsqueeze(-1);
    w = w.defined() ? w * by_row : by_row.expand(shape);
  }
  return w;
}

Flow detached(const Flow& flow, bool gradient) {
  Flow leaves;
  for (auto& t : flow) {
    leaves.push_back(t.defined() ? t.detach() : t);
    if (gradient && t.defined() && t.is_floating_point()) leaves.back().requires_grad_(true);
  }
  return leaves;
}

}  // namespace

std::vector<Batch> cut_batch(const Batch& batch, int rank, int ranks, int64_t micro_rows) {
  const int64_t group = std::max<int64_t>(1, batch.group), groups = batch.rows() / group;
  const int64_t begin = groups * rank / ranks * group, end = (rank + 1 == ranks) ? batch.rows() : groups * (rank + 1) / ranks * group;
  int64_t step = micro_rows <= 0 ? std::max<int64_t>(end - begin, 1) : std::max(micro_rows / group * group, group);
  std::vector<Batch> micros;
  for (int64_t at = begin; at < end; at += step) micros.push_back(slice_rows(batch, at, std::min(end, at + step)));
  return micros;
}

Loss base_loss(const Outputs& out, const Examples& in) {
  const Logits& logits = *out.logits;
  const Batch& index = in.index;
  Tensor items = logits.cross_entropy(in.targets);
  if (in.partner_targets.defined() && index.target_mix.defined()) {
    Tensor mix = index.target_mix.to(items.scalar_type());
    while (mix.dim() < items.dim()) mix = mix.unsqueeze(-1);
    items = mix * items + (1 - mix) * logits.cross_entropy(in.partner_targets);
  }
  if (index.uniform_target > 0) items = (1 - index.uniform_target) * items + index.uniform_target * (logits.log_partition() - logits.mean());
  return {{Term{"data", items, Per::kWeight, 1}}};
}

BlockExecution::BlockExecution(RunSession& session) : session_(session), scaler_(session.options().compute == at::kHalf, session.options().loss_scale) { rebuilt(); }
BlockExecution::~BlockExecution() = default;

void BlockExecution::rebuilt() {
  auto& table = session_.table();
  working_.assign(table.entries.size(), Tensor());
  source_.assign(table.entries.size(), Tensor());
  product_.assign(table.entries.size(), Tensor());
  version_.assign(table.entries.size(), -1);
  block_weights_.assign(table.model->blocks.size(), {});
  finished_in_ = block_weights_;
  for (size_t id = 0; id < table.entries.size(); ++id) {
    const auto& blocks = table.entries[id].blocks;
    for (int b : blocks) block_weights_[b].push_back(static_cast<int>(id));
    if (table.parameters[id].trainable) finished_in_[*std::min_element(blocks.begin(), blocks.end())].push_back(static_cast<int>(id));
  }
}

void BlockExecution::publish() {
  auto& table = session_.table();
  const auto compute = session_.options().compute;
  for (size_t id = 0; id < table.entries.size(); ++id) {
    Parameter& p = table.parameters[id];
    const WeightOptions& options = table.entries[id].weight->options;
    const auto dtype = options.keep_precision || options.role == Role::kStatistic ? p.value.scalar_type() : compute;
    const bool plain = session_.transforms().empty() || !p.trainable;
    if (plain && dtype == p.value.scalar_type() && !options.own.defined()) {
      if (!working_[id].defined() || working_[id].const_data_ptr() != p.value.const_data_ptr()) {
        working_[id] = p.value.detach();
        if (p.trainable) working_[id].requires_grad_(true);
      }
      continue;
    }
    const int64_t version = p.value._version();
    if (plain && version == version_[id]) continue;
    version_[id] = version;
    Tensor made = p.value.detach();
    if (!plain) {
      source_[id] = p.value.detach().requires_grad_(true);
      at::AutoGradMode on(true);
      product_[id] = source_[id];
      for (auto& transform : session_.transforms()) product_[id] = transform(p, product_[id]);
      made = product_[id].detach();
    }
    if (options.own.defined()) {
      at::NoGradGuard off;
      Tensor own = options.own;
      own.copy_(made);
      working_[id] = own;
      if (p.trainable) working_[id].requires_grad_(true);
    } else {
      if (!working_[id].defined()) {
        working_[id] = made.to(dtype, false, true);
        if (p.trainable) working_[id].requires_grad_(true);
      } else {
        at::NoGradGuard off;
        working_[id].copy_(made);
      }
    }
  }
}

void BlockExecution::begin(Flight& flight, Examples examples, const Progress& progress, uint64_t noise, bool training) {
  const Batch& index = examples.index;
  const Tensor streams = (index.noise.defined() ? index.noise : index.id).to(at::kLong).contiguous();
  flight.forward.row_streams.assign(streams.const_data_ptr<int64_t>(), streams.const_data_ptr<int64_t>() + streams.numel());
  flight.forward.row_items = streams.numel() * std::max<int64_t>(1, index.length);
  flight.forward.noise_key = mix(session_.options().seed, static_cast<uint64_t>(progress.draw), noise);
  flight.forward.table = working_.data();
  flight.forward.training = training;
  flight.forward.dtype = session_.options().compute;
  const auto device = session_.options().device;
  for (Tensor* t : {&examples.inputs, &examples.targets, &examples.mask, &examples.partner_inputs, &examples.partner_targets})
    if (t->defined()) *t = t->to(device);
  if (examples.inputs.is_floating_point()) {
    if (examples.partner_inputs.defined() && index.input_mix.defined()) {
      Tensor m = index.input_mix.to(examples.inputs.scalar_type());
      while (m.dim() < examples.inputs.dim()) m = m.unsqueeze(-1);
      examples.inputs = m * examples.inputs + (1 - m) * examples.partner_inputs;
      examples.partner_inputs = Tensor();
    }
    examples.inputs = examples.inputs.to(flight.forward.dtype);
  }
  flight.examples = std::move(examples);
}

void BlockExecution::run_forward(Flight& flight, bool keep) {
  auto& blocks = session_.table().model->blocks;
  Flow x{flight.examples.inputs};
  const bool recompute = session_.options().recompute;
  const size_t head = blocks.size() - 1;
  flight.in.resize(head);
  flight.out.resize(head);
  flight.added.resize(head);
  for (size_t b = 0; b < head; ++b) {
    if (!keep) {
      x = blocks[b].layer->flow(flight.forward, std::move(x));
      continue;
    }
    flight.in[b] = detached(x, b > 0);
    at::AutoGradMode grad(!recompute);
    flight.out[b] = blocks[b].layer->flow(flight.forward, flight.in[b]);
    x = flight.out[b];
    if (recompute) flight.out[b].clear();  // its auxiliary terms have no graph either: they come again when recomputing
    else flight.added[b] = std::move(flight.forward.added);
    flight.forward.added.clear();
  }
  flight.hidden = keep ? x[0].detach().requires_grad_(true) : x[0];
}

Outputs BlockExecution::outputs_of(Flight& flight) {
  auto& table = session_.table();
  const Layer& head = *table.model->blocks.back().layer;
  Outputs out;
  out.hidden = flight.hidden;
  out.head = [&head, &flight](const Tensor& hidden) { return dense_logits(head.forward(flight.forward, hidden)); };
  out.weight = [this](std::string_view name) {
    auto& t = session_.table();
    for (size_t id = 0; id < t.entries.size(); ++id)
      if (t.entries[id].name == name) return working_[id];
    throw UserError("loss: the model has no weight " + std::string(name));
  };
  out.logits = out.head(flight.hidden);
  return out;
}

std::map<std::string, std::shared_ptr<Logits>> BlockExecution::run_teachers(const Examples& examples) {
  at::NoGradGuard off;
  std::map<std::string, std::shared_ptr<Logits>> teachers;
  auto& table = session_.table();
  session_.open_teachers();
  for (auto& [name, teacher] : session_.folder_teachers()) teachers[name] = dense_logits(teacher(examples.inputs));
  for (auto& [name, owner] : session_.teachers()) {
    std::vector<Tensor> values(table.entries.size());
    for (size_t id = 0; id < values.size(); ++id) {
      const Parameter& p = table.parameters[id];
      values[id] = (p.trainable ? session_.slot(owner, p) : p.value).to(working_[id].scalar_type());
    }
    EngineForward forward;
    forward.table = values.data();
    forward.training = false;
    forward.dtype = session_.options().compute;
    Flow x{examples.inputs};
    for (size_t b = 0; b + 1 < table.model->blocks.size(); ++b) x = table.model->blocks[b].layer->flow(forward, std::move(x));
    teachers[name] = dense_logits(table.model->blocks.back().layer->forward(forward, x[0]));
  }
  return teachers;
}

Loss BlockExecution::chain(size_t i, const Outputs& out, const Examples& in) const {
  if (i == session_.techniques().size()) return base_loss(out, in);
  return session_.techniques()[i]->loss(out, in, [this, i](const Outputs& o, const Examples& e) { return chain(i + 1, o, e); });
}

// Sum of the terms, each divided by its denominator over the whole step, and logged by name.
Tensor BlockExecution::objective(Flight& flight, const Outputs& out, const Totals& totals, Sums& sums) {
  Loss loss = chain(0, out, flight.examples);
  Tensor total;
  for (Term& term : loss.terms) {
    Tensor value = term.items;
    if (value.dim() > 0) {
      const Tensor w = term.per == Per::kWeight ? item_weights(flight.examples, value.sizes(), value.scalar_type())
                       : flight.examples.mask.defined() ? flight.examples.mask.to(value.scalar_type())
                                                        : Tensor();
      value = (w.defined() ? value * w : value).sum();
    }
    value = value * (term.scale / std::max(term.per == Per::kWeight ? totals.weight : totals.items, 1e-300));
    Tensor logged = value.detach().to(at::kDouble);
    auto [at, fresh] = sums.terms.emplace(term.name, logged);
    if (!fresh) at->second = at->second + logged;
    total = total.defined() ? total + value : value;
  }
  for (auto& added : flight.forward.added) total = total + auxiliary(added, totals, sums);
  flight.forward.added.clear();
  if (sums.example_loss.defined()) {
    const Tensor items = loss.data().detach().to(at::kDouble);
    const Tensor mask = flight.examples.mask.defined() ? flight.examples.mask.to(at::kDouble) : at::ones(items.sizes(), items.options());
    Tensor row = items * mask, count = mask;
    if (items.dim() > 1) row = row.sum(-1), count = count.sum(-1);
    const int64_t begin = flight.examples.index.extra.at("huajin.row").select(0, 0).item().toLong();
    sums.example_loss.slice(0, begin, begin + row.size(0)).copy_(row / count.clamp_min(1));
  }
  return total;
}

void BlockExecution::accumulate(int id, Tensor grad) {
  Parameter& p = session_.table().parameters[id];
  if (p.grad.defined()) {
    at::NoGradGuard off;
    p.grad.add_(grad);
  } else {
    p.grad = grad.scalar_type() == p.value.scalar_type() ? std::move(grad) : grad.to(p.value.scalar_type());
  }
}

void BlockExecution::add_rows(int id, const Tensor& ids, const Tensor& grads) {
  at::NoGradGuard off;
  Parameter& p = session_.table().parameters[id];
  Tensor into = p.grad;
  if (!session_.transforms().empty() || !into.defined()) into = at::zeros(p.value.sizes(), p.value.options());
  const Tensor rows = grads.to(into.scalar_type()).contiguous(), where = ids.contiguous();
  if (into.is_cpu() && into.scalar_type() == at::kFloat) {
    float* to = into.mutable_data_ptr<float>();
    const float* from = rows.const_data_ptr<float>();
    const int64_t* row = where.const_data_ptr<int64_t>();
    const int64_t width = into.size(1);
    for (int64_t i = 0; i < where.numel(); ++i)
      for (int64_t j = 0; j < width; ++j) to[row[i] * width + j] += from[i * width + j];
  } else {
    into.index_add_(0, where, rows);
  }
  if (!into.is_same(p.grad)) accumulate(id, into);
}

void BlockExecution::take_gradients(int block, bool last) {
  for (int id : block_weights_[block]) {
    Tensor& leaf = working_[id];
    if (!leaf.requires_grad() || !leaf.grad().defined()) continue;
    Tensor grad = leaf.grad();
    leaf.mutable_grad() = Tensor();
    accumulate(id, std::move(grad));
  }
  if (!last || !session_.transforms().empty() || session_.reducer() != nullptr) return;
  if (session_.communicator().ranks() > 1) return release_block(block);
  if (scaler_.enabled()) return;
  for (int id : finished_in_[block])
    if (const Parameter& p = session_.table().parameters[id]; p.grad.defined()) session_.take_norm(p);
}

void BlockExecution::release_block(int block) {
  std::vector<Tensor> ready;
  for (int id : finished_in_[block]) {
    Parameter& p = session_.table().parameters[id];
    if (!p.grad.defined()) p.grad = at::zeros_like(p.value);
    p.grad = p.grad.contiguous();
    ready.push_back(p.grad);
  }
  if (!ready.empty()) session_.communicator().start_sum(ready);
}

void BlockExecution::run_backward(Flight& flight, const Tensor& total, const Totals& totals, Sums& sums, bool last) {
  auto& blocks = session_.table().model->blocks;
  const double scale = scaler_.scale();
  torch::autograd::backward({scale == 1 ? total : total * scale});
  take_gradients(static_cast<int>(blocks.size()) - 1, last);
  Flow upstream{flight.hidden.grad()};
  flight.hidden = Tensor();
  for (int b = static_cast<int>(blocks.size()) - 2; b >= 0; --b) {
    backward_block(flight, b, upstream, totals, sums);
    take_gradients(b, last);
  }
}

void BlockExecution::backward_block(Flight& flight, int b, Flow& upstream, const Totals& totals, Sums& sums) {
  const Layer& layer = *session_.table().model->blocks[b].layer;
  if (session_.options().recompute) {
    flight.forward.recomputing = true;
    flight.out[b] = layer.flow(flight.forward, flight.in[b]);
    flight.added[b] = std::move(flight.forward.added);
    flight.forward.added.clear();
    flight.forward.recomputing = false;
  }
  std::vector<Tensor> roots, seeds;
  for (size_t i = 0; i < flight.out[b].size(); ++i)
    if (flight.out[b][i].requires_grad() && i < upstream.size() && upstream[i].defined()) roots.push_back(flight.out[b][i]), seeds.push_back(upstream[i]);
  for (auto& added : flight.added[b]) {
    const Tensor value = auxiliary(added, totals, sums);
    if (value.requires_grad()) roots.push_back(value), seeds.push_back(at::ones({}, value.options()) * scaler_.scale());
  }
  if (!roots.empty()) torch::autograd::backward(roots, seeds);
  upstream.clear();
  for (auto& t : flight.in[b]) upstream.push_back(t.defined() && t.requires_grad() ? t.grad() : Tensor());
  flight.out[b].clear();
  flight.in[b].clear();
  flight.added[b].clear();
}

// A layer's own term, divided by the step's items, and logged.
Tensor BlockExecution::auxiliary(const EngineForward::Added& added, const Totals& totals, Sums& sums) {
  const Tensor value = added.term * (added.scale / std::max(totals.items, 1e-300));
  const Tensor logged = value.detach().to(at::kDouble);
  auto [at, fresh] = sums.terms.emplace(added.name, logged);
  if (!fresh) at->second = at->second + logged;
  return value;
}

void BlockExecution::transforms_backward() {
  if (session_.transforms().empty()) return;
  auto& table = session_.table();
  for (size_t id = 0; id < table.entries.size(); ++id) {
    Parameter& p = table.parameters[id];
    if (!p.trainable || !p.grad.defined() || !product_[id].defined() || !product_[id].requires_grad()) continue;
    torch::autograd::backward({product_[id]}, {p.grad.to(product_[id].scalar_type())});
    p.grad = source_[id].grad().to(p.value.scalar_type());
    source_[id] = product_[id] = Tensor();
    version_[id] = -1;
  }
}

bool BlockExecution::gradients(Step& step, Pass pass) {
  auto& comm = session_.communicator();
  const bool first = step.passes++ == 0;
  if (first && (session_.needs() & kExampleLosses)) {
    std::vector<int64_t> rows(step.batch.rows());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
    step.batch.extra["huajin.row"] = at::from_blob(rows.data(), {static_cast<int64_t>(rows.size())}, at::kLong).clone();
  }
  std::vector<Examples> loaded;
  for (Batch& micro : cut_batch(step.batch, comm.rank(), comm.ranks(), session_.options().micro_rows))
    loaded.push_back(session_.loader().load(micro, step.progress.draw));

  double counts[2] = {0, 0};
  for (auto& examples : loaded) {
    const double all = static_cast<double>(examples.targets.numel());
    counts[1] += examples.mask.defined() ? examples.mask.sum(at::kDouble).item().toDouble() : all;
    const Tensor w = item_weights(examples, examples.targets.sizes(), at::kDouble);
    counts[0] += w.defined() ? w.expand(examples.targets.sizes()).sum().item().toDouble() : all;
  }
  if (comm.ranks() > 1) comm.sum(counts);
  const Totals totals{counts[0], counts[1]};

  publish();
  for (auto& p : session_.table().parameters) p.grad = Tensor();
  session_.gradients_changed();
  Sums sums;
  if (first && (session_.needs() & kExampleLosses)) sums.example_loss = at::zeros({step.batch.rows()}, at::kDouble);
  std::vector<EngineForward::Recorded> recorded;
  const uint64_t noise = pass.fresh_noise ? static_cast<uint64_t>(step.passes) : 0;
  for (size_t m = 0; m < loaded.size(); ++m) {
    Flight flight;
    begin(flight, std::move(loaded[m]), step.progress, noise, true);
    run_forward(flight, true);
    {
      Outputs out = outputs_of(flight);
      out.teachers = run_teachers(flight.examples);
      const Tensor total = objective(flight, out, totals, sums);
      run_backward(flight, total, totals, sums, m + 1 == loaded.size());
    }
    for (auto& r : flight.forward.recorded) recorded.push_back(std::move(r));
  }
  if (comm.ranks() > 1 && session_.transforms().empty() && session_.reducer() == nullptr) {
    if (loaded.empty())  // fewer rows than ranks: this rank adds zeros
      for (int b = static_cast<int>(block_weights_.size()) - 1; b >= 0; --b) release_block(b);
    comm.finish_sums();
  }
  if (first) recorded_ = std::move(recorded);
  return finish(step, pass, sums);
}

// What could not be reduced block by block: a compressing reducer, and gradients that pass through transforms first.
void BlockExecution::reduce_late(Pass pass) {
  auto& comm = session_.communicator();
  Reducer* reducer = session_.reducer();
  if (reducer == nullptr && (comm.ranks() == 1 || session_.transforms().empty())) return;
  for (auto& p : session_.table().parameters) {
    if (!p.trainable) continue;
    p.grad = p.grad.defined() ? p.grad.contiguous() : at::zeros_like(p.value);
    if (reducer != nullptr) p.grad = reducer->reduce(p, p.grad, pass);
    else comm.sum(p.grad);
  }
}

// Unscaling, the finite check, readings.
bool BlockExecution::finish(Step& step, Pass pass, Sums& sums) {
  transforms_backward();
  reduce_late(pass);
  bool finite = true;
  if (scaler_.enabled()) {
    std::vector<Tensor> grads;
    for (auto& p : session_.table().parameters)
      if (p.grad.defined()) grads.push_back(p.grad);
    Tensor found = at::zeros({1}, at::kFloat);
    const Tensor inverse = at::ones({1}, at::kFloat) / scaler_.scale();
    at::_amp_foreach_non_finite_check_and_unscale_(grads, found, inverse);
    finite = found.item().toDouble() == 0;
    if (!finite || !pass.probe) scaler_.update(!finite);  // a probe that overflows would do so again
  }
  finite = finite && std::isfinite(session_.norm().item().toDouble());
  if (step.passes == 1) finite = read_first_pass(step, sums) && finite;
  return finite;
}

bool BlockExecution::read_first_pass(Step& step, Sums& sums) {
  constexpr size_t kMostTerms = 32;
  auto& comm = session_.communicator();
  std::vector<double> values;
  for (auto& [name, value] : sums.terms) values.push_back(value.item().toDouble());
  if (values.size() > kMostTerms) throw UserError("loss: more than 32 named terms; add some of them up");
  values.resize(kMostTerms, 0.0);
  if (comm.ranks() > 1) comm.sum(values);
  double loss = 0;
  for (double value : values) loss += value;
  size_t i = 0;
  for (auto& [name, value] : sums.terms) step.terms[name] = values[i++];
  step.loss = at::full({}, loss, at::kDouble);
  if (sums.example_loss.defined()) {
    if (comm.ranks() > 1) comm.sum(sums.example_loss);
    step.example_loss = sums.example_loss;
  }
  return std::isfinite(loss);
}

// The mean of what was recorded of each statistic, over micro-batches and ranks.
void BlockExecution::each_statistic(std::vector<EngineForward::Recorded> recorded, FunctionRef<void(size_t id, const Tensor& mean)> see) {
  auto& table = session_.table();
  auto& comm = session_.communicator();
  std::map<int, std::pair<Tensor, double>> sums;
  for (auto& r : recorded) {
    auto& [sum, count] = sums[r.id];
    const Tensor part = r.mean.to(at::kDouble) * r.count;
    sum = sum.defined() ? sum + part : part;
    count += r.count;
  }
  at::NoGradGuard off;
  for (size_t id = 0; id < table.entries.size(); ++id) {
    if (table.entries[id].weight->options.momentum <= 0) continue;
    auto found = sums.find(static_cast<int>(id));
    Tensor sum = found != sums.end() ? found->second.first : at::zeros(table.parameters[id].value.sizes(), at::kDouble);
    double count[1] = {found != sums.end() ? found->second.second : 0};
    if (comm.ranks() > 1) {
      sum = sum.contiguous();
      comm.sum(sum);
      comm.sum(count);
    }
    if (count[0] > 0) see(id, (sum / count[0]).to(table.parameters[id].value.scalar_type()));
  }
}

void BlockExecution::settle(Step& step) {
  auto& table = session_.table();
  each_statistic(std::exchange(recorded_, {}), [&](size_t id, const Tensor& mean) {
    const double momentum = table.entries[id].weight->options.momentum;
    step.records[table.entries[id].name] = mean;
    table.parameters[id].value.mul_(1 - momentum).add_(mean, momentum);
  });
}

void BlockExecution::estimate_statistics(std::span<const Batch> batches, const Progress& progress) {
  at::NoGradGuard off;
  auto& comm = session_.communicator();
  publish();
  std::vector<EngineForward::Recorded> recorded;
  for (const Batch& batch : batches)
    for (Batch& micro : cut_batch(batch, comm.rank(), comm.ranks(), session_.options().micro_rows)) {
      Flight flight;
      begin_score(flight, micro, progress, true);
      for (auto& r : flight.forward.recorded) recorded.push_back(std::move(r));
    }
  each_statistic(std::move(recorded), [&](size_t id, const Tensor& mean) { session_.table().parameters[id].value.copy_(mean); });
}

Tensor BlockExecution::score(const Batch& batch, const Progress& progress, bool training) {
  at::NoGradGuard off;
  auto& comm = session_.communicator();
  publish();
  Tensor scores;
  int64_t begin = batch.rows() * comm.rank() / comm.ranks();
  if (comm.ranks() > 1) begin = std::max<int64_t>(1, batch.rows() / std::max<int64_t>(1, batch.group)) * comm.rank() / comm.ranks() * std::max<int64_t>(1, batch.group);
  for (Batch& micro : cut_batch(batch, comm.rank(), comm.ranks(), session_.options().micro_rows)) {
    Flight flight;
    begin_score(flight, micro, progress, training);
    const Outputs out = outputs_of(flight);
    const Tensor items = base_loss(out, flight.examples).data().to(at::kDouble);
    if (!scores.defined()) {
      auto shape = items.sizes().vec();
      shape[0] = batch.rows();
      scores = at::zeros(shape, at::kDouble);
    }
    scores.slice(0, begin, begin + items.size(0)).copy_(items);
    begin += items.size(0);
  }
  if (comm.ranks() > 1) {
    if (!scores.defined()) scores = session_.source().classifies() ? at::zeros({batch.rows()}, at::kDouble) : at::zeros({batch.rows(), batch.length}, at::kDouble);
    comm.sum(scores);
  }
  return scores;
}

void BlockExecution::begin_score(Flight& flight, const Batch& micro, const Progress& progress, bool training) {
  begin(flight, session_.loader().load(micro, progress.draw), progress, 0, training);
  run_forward(flight, false);
}

Evaluated BlockExecution::evaluate(const Examples& examples) {
  at::NoGradGuard off;
  publish();
  Flight flight;
  begin(flight, examples, session_.progress(), 0, false);
  run_forward(flight, false);
  const Tensor logits = session_.table().model->blocks.back().layer->forward(flight.forward, flight.hidden);
  const Tensor items = dense_logits(logits)->cross_entropy(flight.examples.targets).to(at::kDouble);
  const Tensor hits = logits.argmax(-1).eq(flight.examples.targets).to(at::kDouble);
  Evaluated result;
  if (flight.examples.mask.defined()) {
    const Tensor mask = flight.examples.mask.to(at::kDouble);
    result = {(items * mask).sum().item().toDouble(), mask.sum().item().toDouble(), (hits * mask).sum().item().toDouble()};
  } else {
    result = {items.sum().item().toDouble(), static_cast<double>(items.numel()), hits.sum().item().toDouble()};
  }
  return result;
}

Tensor BlockExecution::logits(const Tensor& inputs, Cache* cache, int64_t position) {
  at::NoGradGuard off;
  publish();
  EngineForward forward;
  forward.table = working_.data();
  forward.training = false;
  forward.dtype = session_.options().compute;
  forward.cache = cache;
  forward.position = position;
  auto& blocks = session_.table().model->blocks;
  Flow x{inputs.is_floating_point() ? inputs.to(forward.dtype) : inputs};
  for (size_t b = 0; b + 1 < blocks.size(); ++b) x = blocks[b].layer->flow(forward, std::move(x));
  return blocks.back().layer->forward(forward, x[0]).to(session_.options().master);
}

}  // namespace huajin
