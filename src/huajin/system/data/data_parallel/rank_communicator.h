// The communicator of a run with several ranks (core/communicator.h), on any transport: tensors and numbers to bytes, and a thread that sums gradients while
// the backward pass goes on. docs/design/data-parallel.md says why a thread, and why pieces of 4 MB.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "huajin/core/communicator.h"
#include "huajin/system/data/data_parallel/transport.h"

namespace huajin {

// One reduction in the background, on the monotonic clock.
struct Transfer {
  double started = 0, finished = 0;
  int64_t bytes = 0;
};

class RankCommunicator : public Communicator {
 public:
  // `close` is called at the end, after the sender thread has ended: with true if the run ended in order.
  RankCommunicator(int rank, int ranks, std::unique_ptr<Transport> foreground, std::unique_ptr<Transport> background, std::function<void(bool)> close);
  ~RankCommunicator() override;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void sum(at::Tensor& tensor) override;
  void sum(std::span<double> numbers) override;
  void maximum(std::span<double> numbers) override;
  void broadcast(at::Tensor& tensor, int from) override;
  void broadcast(std::string& bytes, int from) override;
  at::Tensor gather(const at::Tensor& part) override;
  void barrier(const char* where) override;
  void start_sum(std::span<at::Tensor> tensors) override;
  void finish_sums() override;

  // Of the round that the last finish_sums() ended, in order; and the rounds so far.
  const std::vector<Transfer>& transfers() const { return transfers_; }
  int64_t rounds() const { return rounds_; }

 private:
  void send();
  void sum_block(std::vector<at::Tensor>& tensors);
  void sum_piece(void* data, int64_t count, Wire wire);
  template <class Call>
  void guarded(Call call);

  int rank_, ranks_;
  std::unique_ptr<Transport> foreground_, background_;
  std::function<void(bool)> close_;
  std::vector<Transfer> transfers_, sending_;
  int64_t rounds_ = 0;
  std::vector<char> bucket_;  // small tensors of a block travel together
  bool failed_ = false;       // after an error nothing collective works any more

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::vector<at::Tensor>> queue_;
  bool busy_ = false, stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace huajin
