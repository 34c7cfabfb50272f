// One pass of pipeline_zero3.h: the 1F1B schedule, a block's forward and backward, the loss on the last stage.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "huajin/core/errors.h"
#include "huajin/core/logits.h"
#include "huajin/core/rng.h"
#include "pipeline_zero3.h"

namespace huajin {

void PipelineZero3::begin(Flight& flight, const Batch& micro, const Step& step, uint64_t noise) {
  flight.empty = micro.rows() == 0;
  if (flight.empty) return;
  flight.examples = session_.loader().load(micro, step.progress.draw);
  const Batch& index = flight.examples.index;
  const Tensor streams = (index.noise.defined() ? index.noise : index.id).to(at::kLong).contiguous();
  flight.forward.row_streams.assign(streams.const_data_ptr<int64_t>(), streams.const_data_ptr<int64_t>() + streams.numel());
  flight.forward.row_items = streams.numel() * std::max<int64_t>(1, index.length);
  flight.forward.noise_key = mix(session_.options().seed, static_cast<uint64_t>(step.progress.draw), noise);
  flight.forward.table = leaves_.data();
  flight.forward.training = true;
  flight.forward.dtype = at::kDouble;
}

void PipelineZero3::run_forward(Flight& flight) {
  auto& blocks = session_.table().model->blocks;
  const bool recompute = session_.options().recompute;
  const int body_end = last_stage() ? end_ - 1 : end_;  // the head runs with its loss, at the start of the backward pass
  flight.in.resize(blocks.size());
  flight.out.resize(blocks.size());
  flight.added.resize(blocks.size());
  Flow x;
  if (!flight.empty) x = mesh_.stage == 0 ? Flow{flight.examples.inputs} : receive_flow(mesh_.stage - 1);
  for (int b = begin_; b < body_end; ++b) {
    fill(b);
    if (!flight.empty) {
      for (auto& t : x) t = t.is_floating_point() ? t.detach().requires_grad_(true) : t;
      flight.in[b] = x;
      at::AutoGradMode grad(!recompute);
      flight.out[b] = blocks[b].layer->flow(flight.forward, x);
      x = flight.out[b];
      if (recompute) flight.out[b].clear();
      else flight.added[b] = std::move(flight.forward.added);
      flight.forward.added.clear();
    }
    release(b);
  }
  if (!flight.empty && !last_stage()) send_flow(x, mesh_.stage + 1);
  if (last_stage()) {
    for (auto& t : x) t = t.detach().requires_grad_(true);
    flight.in[end_ - 1] = x;
  }
  most_in_flight_ = std::max(most_in_flight_, ++in_flight_);
}

void PipelineZero3::note(const std::string& name, const Tensor& value) { terms_[name] += value.item().toDouble(); }

Loss PipelineZero3::chain(size_t i, const Outputs& out, const Examples& in) const {
  if (i == session_.techniques().size()) return base_loss(out, in);
  return session_.techniques()[i]->loss(out, in, [this, i](const Outputs& o, const Examples& e) { return chain(i + 1, o, e); });
}

Tensor PipelineZero3::objective(Flight& flight, int block) {
  const Layer& head = *session_.table().model->blocks[block].layer;
  Outputs out;
  out.hidden = flight.in[block][0];
  out.head = [&](const Tensor& hidden) { return dense_logits(head.forward(flight.forward, hidden)); };
  out.logits = out.head(out.hidden);
  Tensor total;
  for (Term& term : chain(0, out, flight.examples).terms) {
    Tensor value = term.items;
    if (value.dim() > 0) {
      if (flight.examples.mask.defined()) value = value * flight.examples.mask;
      if (term.per == Per::kWeight && flight.examples.index.weight.defined()) value = value * flight.examples.index.weight.to(at::kDouble).unsqueeze(-1);
      value = value.sum();
    }
    value = value * (term.scale / (term.per == Per::kWeight ? totals_.weight : totals_.items));
    note(term.name, value.detach());
    total = total.defined() ? total + value : value;
  }
  return total;
}

void PipelineZero3::backward_block(Flight& flight, int b, std::vector<Tensor> roots, std::vector<Tensor> seeds) {
  for (auto& added : flight.added[b]) {
    const Tensor value = added.term * (added.scale / totals_.items);
    note(added.name, value.detach());
    roots.push_back(value);
    seeds.push_back(at::ones({}, at::kDouble));
  }
  torch::autograd::backward(roots, seeds);
  flight.out[b].clear();
  flight.added[b].clear();
}

void PipelineZero3::run_backward(Flight& flight) {
  auto& blocks = session_.table().model->blocks;
  Flow upstream;
  if (!flight.empty && !last_stage()) upstream = receive_flow(mesh_.stage + 1);
  for (int b = end_ - 1; b >= begin_; --b) {
    fill(b);
    if (!flight.empty) {
      std::vector<Tensor> roots, seeds;
      if (b + 1 == static_cast<int>(blocks.size())) {
        roots.push_back(objective(flight, b));
        seeds.push_back(at::ones({}, at::kDouble));
        flight.added[b] = std::move(flight.forward.added);
      } else {
        if (session_.options().recompute) {
          flight.forward.recomputing = true;
          flight.out[b] = blocks[b].layer->flow(flight.forward, flight.in[b]);
          flight.forward.recomputing = false;
          flight.added[b] = std::move(flight.forward.added);
        }
        for (size_t i = 0; i < flight.out[b].size(); ++i)
          if (upstream[i].defined() && flight.out[b][i].requires_grad()) roots.push_back(flight.out[b][i]), seeds.push_back(upstream[i]);
      }
      flight.forward.added.clear();
      backward_block(flight, b, std::move(roots), std::move(seeds));
      upstream.clear();
      for (auto& t : flight.in[b]) upstream.push_back(t.requires_grad() ? t.grad() : Tensor());
      flight.in[b].clear();
    }
    take_gradients(b);
    release(b);
  }
  if (!flight.empty && mesh_.stage > 0) send_flow(upstream, mesh_.stage - 1);
  --in_flight_;
}

bool PipelineZero3::gradients(Step& step, Pass pass) {
  const bool first = step.passes++ == 0;
  const uint64_t noise = pass.fresh_noise ? static_cast<uint64_t>(step.passes) : 0;
  std::vector<Batch> micros;
  size_t most = 0;
  for (int d = 0; d < mesh_.data_ranks; ++d) {
    auto cut_rows = cut_batch(step.batch, d, mesh_.data_ranks, session_.options().micro_rows);
    most = std::max(most, cut_rows.size());
    if (d == mesh_.data_rank) micros = std::move(cut_rows);
  }
  Batch none;
  none.id = step.batch.id.slice(0, 0, 0);
  micros.resize(most, none);  // gathers are collective: the same number on every data rank
  std::vector<Flight> flights(most);
  double counts[2] = {0, 0};
  for (size_t m = 0; m < most; ++m) {
    begin(flights[m], micros[m], step, noise);
    if (flights[m].empty) continue;
    const Examples& e = flights[m].examples;
    const Tensor mask = e.mask.defined() ? e.mask.to(at::kDouble) : at::ones(e.targets.sizes(), at::kDouble);
    counts[1] += mask.sum().item().toDouble();
    counts[0] += (e.index.weight.defined() ? mask * e.index.weight.to(at::kDouble).unsqueeze(-1) : mask).sum().item().toDouble();
  }
  MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_DOUBLE, MPI_SUM, mesh_.data);
  totals_ = {counts[0], counts[1]};
  terms_.clear();
  for (auto& p : session_.table().parameters) p.grad = at::zeros_like(p.value);
  session_.gradients_changed();

  const size_t warm_up = std::min<size_t>(most, static_cast<size_t>(mesh_.stages - 1 - mesh_.stage));
  size_t forward = 0, backward = 0;
  while (forward < warm_up) run_forward(flights[forward++]);
  while (forward < most) {
    run_forward(flights[forward++]);
    run_backward(flights[backward++]);
  }
  while (backward < most) run_backward(flights[backward++]);
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  requests_.clear();
  outgoing_.clear();
  sum_ties();
  session_.gradients_changed();

  bool finite = std::isfinite(session_.norm().item().toDouble());
  if (!first) return finite;
  std::ostringstream own;  // terms arise on several stages: everyone gets the sum of each by name
  own.precision(17);
  for (auto& [name, value] : terms_) own << name << ' ' << value << '\n';
  double loss = 0;
  for (int r = 0; r < session_.communicator().ranks(); ++r) {
    std::string text = own.str(), name;
    session_.communicator().broadcast(text, r);
    std::istringstream lines(text);
    for (double value; lines >> name >> value; loss += value) step.terms[name] += value;
  }
  step.loss = at::full({}, loss, at::kDouble);
  return finite && std::isfinite(loss);
}

Tensor PipelineZero3::score(const Batch&, const Progress&, bool) { throw UserError("layout pipeline x ZeRO-3: it only trains; scoring needs layout.data alone"); }
Evaluated PipelineZero3::evaluate(const Examples&) { throw UserError("layout pipeline x ZeRO-3: it only trains; evaluate with layout.data alone"); }
Tensor PipelineZero3::logits(const Tensor&, Cache*, int64_t) { throw UserError("layout pipeline x ZeRO-3: it only trains; generate with layout.data alone"); }

}  // namespace huajin
