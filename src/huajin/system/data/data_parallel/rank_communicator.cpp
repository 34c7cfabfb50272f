#include "huajin/system/data/data_parallel/rank_communicator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

constexpr int64_t kPieceBytes = 4 << 20;   // a reduction in the background: small enough to begin early and to keep caches warm, large enough to be fast
constexpr int64_t kSmallBytes = 64 << 10;  // tensors below travel together with others of their block

Wire wire_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat: return Wire::kFloat;
    case at::kDouble: return Wire::kDouble;
    case at::kBFloat16: return Wire::kBFloat16;
    case at::kHalf: return Wire::kHalf;
    case at::kLong: return Wire::kInt64;
    default: throw Error(kExitInternal, std::string("sum over ranks: no sums of type ") + c10::toString(tensor.scalar_type()) + "; float32, float64, bfloat16, float16, int64");
  }
}

std::string describe(const char* verb, const at::Tensor& tensor) { return std::string(verb) + " of " + std::to_string(tensor.numel()) + " " + c10::toString(tensor.scalar_type()); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Runs `use` on contiguous memory of this machine that holds the tensor, and brings it back if that is a copy.
template <class Use>
void on_host(at::Tensor& tensor, Use use) {
  if (tensor.is_cpu() && tensor.is_contiguous()) {
    use(tensor);
    tensor.unsafeGetTensorImpl()->bump_version();
    return;
  }
  at::Tensor copy = tensor.cpu().contiguous();
  use(copy);
  tensor.copy_(copy);
}

}  // namespace

RankCommunicator::RankCommunicator(int rank, int ranks, std::unique_ptr<Transport> foreground, std::unique_ptr<Transport> background, std::function<void(bool)> close)
    : rank_(rank), ranks_(ranks), foreground_(std::move(foreground)), background_(std::move(background)), close_(std::move(close)), thread_([this] { send(); }) {}

RankCommunicator::~RankCommunicator() {
  const bool in_order = !failed_ && std::uncaught_exceptions() == 0;
  if (!in_order) background_->abandon();
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (close_) close_(in_order && !error_);
}

// After a failed collective the ranks are out of step: whatever comes next must not hang as well.
template <class Call>
void RankCommunicator::guarded(Call call) {
  if (failed_) throw Error(kExitRankLost, "rank " + std::to_string(rank_) + ": a collective failed before; the run cannot go on");
  try {
    call();
  } catch (...) {
    failed_ = true;
    throw;
  }
}

void RankCommunicator::sum(at::Tensor& tensor) {
  const Wire wire = wire_of(tensor);
  guarded([&] { on_host(tensor, [&](at::Tensor& t) { foreground_->reduce(t.mutable_data_ptr(), t.numel(), wire, describe("sum", t)); }); });
}
void RankCommunicator::sum(std::span<double> numbers) {
  guarded([&] { foreground_->reduce(numbers.data(), static_cast<int64_t>(numbers.size()), Wire::kDouble, "sum of " + std::to_string(numbers.size()) + " numbers"); });
}
void RankCommunicator::maximum(std::span<double> numbers) {
  guarded([&] { foreground_->reduce(numbers.data(), static_cast<int64_t>(numbers.size()), Wire::kMaximum, "maximum of " + std::to_string(numbers.size()) + " numbers"); });
}

void RankCommunicator::broadcast(at::Tensor& tensor, int from) {
  guarded([&] { on_host(tensor, [&](at::Tensor& t) { foreground_->broadcast(t.mutable_data_ptr(), static_cast<int64_t>(t.nbytes()), from, describe("broadcast", t)); }); });
}
void RankCommunicator::broadcast(std::string& bytes, int from) {
  guarded([&] {
    auto size = static_cast<int64_t>(bytes.size());
    foreground_->broadcast(&size, sizeof size, from, "broadcast of a length");
    bytes.resize(static_cast<size_t>(size));
    foreground_->broadcast(bytes.data(), size, from, "broadcast of " + std::to_string(size) + " bytes");
  });
}

at::Tensor RankCommunicator::gather(const at::Tensor& part) {
  const at::Tensor own = part.cpu().contiguous();
  auto shape = own.sizes().vec();
  if (shape.empty()) shape.push_back(1);
  shape[0] *= ranks_;
  at::Tensor all = at::empty(shape, own.options());
  guarded([&] { foreground_->gather(own.const_data_ptr(), static_cast<int64_t>(own.nbytes()), all.mutable_data_ptr(), describe("gather", own)); });
  return all.to(part.device());
}

void RankCommunicator::barrier(const char* where) {
  guarded([&] { foreground_->barrier(std::string("barrier at ") + where); });
}

void RankCommunicator::start_sum(std::span<at::Tensor> tensors) {
  for (auto& t : tensors) {
    wire_of(t);
    if (!t.is_contiguous()) throw Error(kExitInternal, "start_sum: tensors must be contiguous");
  }
  {
    std::lock_guard lock(mutex_);
    queue_.emplace_back(tensors.begin(), tensors.end());
  }
  wake_.notify_one();
}

void RankCommunicator::finish_sums() {
  guarded([&] {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return error_ || (queue_.empty() && !busy_); });
    if (error_) std::rethrow_exception(error_);
    transfers_ = std::move(sending_);
    sending_.clear();
    if (!transfers_.empty()) ++rounds_;
  });
}

void RankCommunicator::send() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (stop_ || error_) return;
    std::vector<at::Tensor> block = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      sum_block(block);
    } catch (...) {
      failure = std::current_exception();
    }
    block.clear();
    lock.lock();
    busy_ = false;
    error_ = failure;
    idle_.notify_all();
    if (error_) return;
  }
}

// Small tensors of one type are packed into a bucket; large ones are reduced where they lie, piece by piece.
void RankCommunicator::sum_block(std::vector<at::Tensor>& tensors) {
  std::map<at::ScalarType, std::vector<at::Tensor*>> small;
  for (auto& tensor : tensors) {
    if (static_cast<int64_t>(tensor.nbytes()) <= kSmallBytes && tensor.is_cpu()) {
      small[tensor.scalar_type()].push_back(&tensor);
      continue;
    }
    on_host(tensor, [&](at::Tensor& t) { sum_piece(t.mutable_data_ptr(), t.numel(), wire_of(t)); });
  }
  for (auto& [type, group] : small) {
    bucket_.clear();
    for (at::Tensor* t : group) bucket_.insert(bucket_.end(), static_cast<const char*>(t->const_data_ptr()), static_cast<const char*>(t->const_data_ptr()) + t->nbytes());
    sum_piece(bucket_.data(), static_cast<int64_t>(bucket_.size()) / bytes_of(wire_of(*group[0])), wire_of(*group[0]));
    const char* from = bucket_.data();
    for (at::Tensor* t : group) {
      std::memcpy(t->mutable_data_ptr(), from, t->nbytes());
      t->unsafeGetTensorImpl()->bump_version();
      from += t->nbytes();
    }
  }
}

void RankCommunicator::sum_piece(void* data, int64_t count, Wire wire) {
  const int64_t size = bytes_of(wire), piece = kPieceBytes / size;
  for (int64_t at = 0; at < count; at += piece) {
    const int64_t n = std::min(piece, count - at);
    Transfer transfer{now(), 0, n * size};
    background_->reduce(static_cast<char*>(data) + at * size, n, wire, "sum of gradients (" + std::to_string(n) + " " + name_of(wire) + ")");
    transfer.finished = now();
    sending_.push_back(transfer);
  }
}

}  // namespace huajin
