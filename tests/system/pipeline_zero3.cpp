#include "pipeline_zero3.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "huajin/core/errors.h"
#include "huajin/core/logits.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

int64_t slice_begin(int64_t n, int rank, int ranks) { return n * rank / ranks; }

std::pair<std::vector<int>, std::vector<int>> slice_table(int64_t n, int ranks) {
  std::vector<int> counts(ranks), offsets(ranks);
  for (int r = 0; r < ranks; ++r) {
    offsets[r] = static_cast<int>(slice_begin(n, r, ranks));
    counts[r] = static_cast<int>(slice_begin(n, r + 1, ranks)) - offsets[r];
  }
  return {counts, offsets};
}

void check_float64(const Tensor& t) {
  if (t.scalar_type() != at::kDouble) throw Error(kExitInternal, "pipeline x ZeRO-3 test layout: float64 only");
}

// The leaf keeps its shape and place in any graph; its memory comes and goes. No version is bumped: the values are the same every time.
void set_memory(const Tensor& leaf, size_t bytes) {
  auto* storage = leaf.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(bytes == 0 ? at::DataPtr(nullptr, at::Device(at::kCPU)) : c10::GetCPUAllocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

}  // namespace

Mesh::Mesh(int stage_count) : stages(stage_count) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  data_ranks = ranks / stages;
  stage = rank / data_ranks;
  data_rank = rank % data_ranks;
  MPI_Comm_split(MPI_COMM_WORLD, stage, rank, &data);
  MPI_Comm_split(MPI_COMM_WORLD, data_rank, rank, &column);
}
Mesh::~Mesh() {
  MPI_Comm_free(&data);
  MPI_Comm_free(&column);
}

Tensor CutSession::norm() { return norms([](const Parameter& p) { return p.grad.defined() ? p.grad : at::zeros_like(p.value); }).norm(); }

Tensor CutSession::norms(FunctionRef<Tensor(const Parameter&)> slice) {
  std::vector<double> squares;
  for (Parameter* p : parameters()) squares.push_back(std::pow(slice(*p).to(at::kDouble).norm().item().toDouble(), 2) / p->copies);
  communicator().sum(squares);
  Tensor all = at::empty({static_cast<int64_t>(squares.size())}, at::kDouble);
  std::transform(squares.begin(), squares.end(), all.mutable_data_ptr<double>(), [](double s) { return std::sqrt(s); });
  return all;
}

PipelineZero3::PipelineZero3(RunSession& session, const Mesh& mesh) : session_(session), mesh_(mesh) { rebuilt(); }

// Called with whole values and slots on every rank, as the session makes and loads them.
void PipelineZero3::rebuilt() {
  auto& table = session_.table();
  const int blocks = static_cast<int>(table.model->blocks.size());
  begin_ = blocks * mesh_.stage / mesh_.stages;
  end_ = blocks * (mesh_.stage + 1) / mesh_.stages;
  leaves_.assign(table.entries.size(), Tensor());
  weights_of_.assign(blocks, {});
  for (size_t id = 0; id < table.entries.size(); ++id) {
    Parameter& p = table.parameters[id];
    check_float64(p.value);
    p.placement.cut_over_data = true;
    p.placement.stages.clear();
    for (int stage = 0; stage < mesh_.stages; ++stage)
      for (int b : table.entries[id].blocks)
        if (b >= blocks * stage / mesh_.stages && b < blocks * (stage + 1) / mesh_.stages && (p.placement.stages.empty() || p.placement.stages.back() != stage))
          p.placement.stages.push_back(stage);
    p.copies = static_cast<double>(p.placement.stages.size());
    std::vector<Tensor*> slots;
    for (auto& slot : session_.slots())
      if (slot.tensors[id].defined()) slots.push_back(&slot.tensors[id]);
    cut(p, slots);
    if (!holds(p)) continue;
    for (int b : table.entries[id].blocks)
      if (b >= begin_ && b < end_) weights_of_[b].push_back(static_cast<int>(id));
    leaves_[id] = at::empty(p.shape, at::kDouble).requires_grad_(p.trainable);
    set_memory(leaves_[id], 0);
  }
}

bool PipelineZero3::holds(const Parameter& p) const { return std::find(p.placement.stages.begin(), p.placement.stages.end(), mesh_.stage) != p.placement.stages.end(); }

// A stage without the weight owns an empty slice: optimizers and norms need no special case.
void PipelineZero3::cut(Parameter& p, std::vector<Tensor*> slots) {
  const int64_t n = p.value.numel(), from = holds(p) ? slice_begin(n, mesh_.data_rank, mesh_.data_ranks) : 0, to = holds(p) ? slice_begin(n, mesh_.data_rank + 1, mesh_.data_ranks) : 0;
  slots.push_back(&p.value);
  for (Tensor* t : slots) *t = t->reshape(-1).slice(0, from, to).clone();
  p.grad = Tensor();
}

Tensor PipelineZero3::whole(const Parameter& p, const Tensor& slice) {
  if (!holds(p)) return Tensor();
  Tensor all = at::empty(p.shape, at::kDouble);
  const auto [counts, offsets] = slice_table(all.numel(), mesh_.data_ranks);
  MPI_Allgatherv(slice.const_data_ptr<double>(), static_cast<int>(slice.numel()), MPI_DOUBLE, all.mutable_data_ptr<double>(), counts.data(), offsets.data(), MPI_DOUBLE, mesh_.data);
  return all;
}

int64_t PipelineZero3::largest_block_bytes() const {
  int64_t most = 0;
  for (int b = begin_; b < end_; ++b) {
    int64_t bytes = 0;
    for (int id : weights_of_[b]) bytes += leaves_[id].numel() * 8;
    most = std::max(most, bytes);
  }
  return most;
}

void PipelineZero3::fill(int block) {
  for (int id : weights_of_[block]) {
    const Parameter& p = session_.table().parameters[id];
    set_memory(leaves_[id], static_cast<size_t>(leaves_[id].numel()) * 8);
    const auto [counts, offsets] = slice_table(leaves_[id].numel(), mesh_.data_ranks);
    MPI_Allgatherv(p.value.const_data_ptr<double>(), static_cast<int>(p.value.numel()), MPI_DOUBLE, leaves_[id].storage().mutable_data(), counts.data(), offsets.data(), MPI_DOUBLE, mesh_.data);
    filled_ += leaves_[id].numel() * 8;
  }
  most_filled_ = std::max(most_filled_, filled_);
}

void PipelineZero3::release(int block) {
  for (int id : weights_of_[block]) {
    set_memory(leaves_[id], 0);
    filled_ -= leaves_[id].numel() * 8;
  }
}

// A block's gradients, summed over the data axis, added into the owned slices. Ranks with an empty micro-batch add zeros.
void PipelineZero3::take_gradients(int block) {
  for (int id : weights_of_[block]) {
    Parameter& p = session_.table().parameters[id];
    if (!p.trainable) continue;
    Tensor& leaf = leaves_[id];
    const Tensor grad = leaf.grad().defined() ? leaf.grad().contiguous() : at::zeros(p.shape, at::kDouble);
    leaf.mutable_grad() = Tensor();
    const auto [counts, offsets] = slice_table(grad.numel(), mesh_.data_ranks);
    const Tensor slice = at::empty_like(p.value);
    MPI_Reduce_scatter(grad.const_data_ptr<double>(), slice.mutable_data_ptr<double>(), counts.data(), MPI_DOUBLE, MPI_SUM, mesh_.data);
    p.grad = p.grad + slice;
  }
}

// Both stages then hold the same gradient of the tied weight, and stay equal.
void PipelineZero3::sum_ties() {
  for (auto& p : session_.table().parameters)
    if (holds(p) && p.placement.stages.size() > 1) MPI_Allreduce(MPI_IN_PLACE, p.grad.mutable_data_ptr<double>(), static_cast<int>(p.grad.numel()), MPI_DOUBLE, MPI_SUM, mesh_.column);
}

// What crosses a boundary says itself what it is: {count, then of each tensor: defined, float, dimensions, sizes}, then the elements.
void PipelineZero3::send_flow(const Flow& flow, int to) {
  std::vector<int64_t> header{static_cast<int64_t>(flow.size())};
  for (auto& t : flow) {
    header.push_back(t.defined());
    if (!t.defined()) continue;
    check_float64(t);
    header.push_back(t.dim());
    header.insert(header.end(), t.sizes().begin(), t.sizes().end());
  }
  std::vector<char> bytes(header.size() * 8);
  std::memcpy(bytes.data(), header.data(), bytes.size());
  for (auto& t : flow) {
    if (!t.defined()) continue;
    const Tensor c = t.detach().contiguous();
    bytes.insert(bytes.end(), static_cast<const char*>(c.const_data_ptr()), static_cast<const char*>(c.const_data_ptr()) + c.nbytes());
  }
  outgoing_.push_back(std::move(bytes));
  requests_.emplace_back();
  MPI_Isend(outgoing_.back().data(), static_cast<int>(outgoing_.back().size()), MPI_BYTE, to, 0, mesh_.column, &requests_.back());
}

Flow PipelineZero3::receive_flow(int from) {
  MPI_Status status;
  int size = 0;
  MPI_Probe(from, 0, mesh_.column, &status);
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::vector<int64_t> words(static_cast<size_t>(size + 7) / 8);
  MPI_Recv(words.data(), size, MPI_BYTE, from, 0, mesh_.column, MPI_STATUS_IGNORE);
  Flow flow;
  size_t at = 1;
  std::vector<std::vector<int64_t>> shapes;
  for (int64_t i = 0; i < words[0]; ++i) {
    flow.emplace_back();
    if (words[at++] == 0) continue;
    const auto dims = static_cast<size_t>(words[at++]);
    flow.back() = at::empty(std::vector<int64_t>(words.begin() + static_cast<int64_t>(at), words.begin() + static_cast<int64_t>(at + dims)), at::kDouble);
    at += dims;
  }
  for (auto& t : flow) {
    if (!t.defined()) continue;
    std::memcpy(t.mutable_data_ptr(), words.data() + at, t.nbytes());
    at += static_cast<size_t>(t.numel());
  }
  return flow;
}

}  // namespace huajin
