// Collectives between the processes of a run. One process is a communicator too, so that nobody asks.
// Every call is collective in the same order on every rank. A rank that dies or stops makes the others throw Error(kExitRankLost) that names rank
// and collective within the time-out.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace huajin {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual void sum(at::Tensor& tensor) = 0;                 // all-reduce in place, contiguous; bf16 and fp16 are summed in float32
  virtual void sum(std::span<double> numbers) = 0;          // in float64
  virtual void maximum(std::span<double> numbers) = 0;
  virtual void broadcast(at::Tensor& tensor, int from) = 0;
  virtual void broadcast(std::string& bytes, int from) = 0;
  virtual at::Tensor gather(const at::Tensor& part) = 0;    // [n, ...] of each rank -> [ranks * n, ...] on every rank, in rank order
  virtual void barrier(const char* where) = 0;
  // Sums in the background: start() hands over a block's gradients as they arrive, in the same order on every rank; finish() waits for all
  // of them. The tensors hold the sums only after finish().
  virtual void start_sum(std::span<at::Tensor> tensors) = 0;
  virtual void finish_sums() = 0;
};

std::unique_ptr<Communicator> single_process();

}  // namespace huajin
