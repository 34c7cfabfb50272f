// Loads rows ahead of the step that needs them. Content depends on ids alone, so workers, prefetching and evaluation can't change a run.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "huajin/core/source.h"

namespace huajin {

class Loader {
 public:
  Loader(const Source& source, uint64_t seed, int64_t workers);
  ~Loader();
  Loader(const Loader&) = delete;

  // The index of the batch that starts at this progress: ids in order, nothing loaded.
  Batch draw(const Draw& draw, const Progress& progress) const;
  // Says that these rows will be asked for soon. Never changes what load() returns.
  void announce(const Batch& rows, int64_t draw);
  // Rows of a micro-batch, with partners where the index has them. Waits for a worker that has them in hand.
  Examples load(const Batch& rows, int64_t draw);

  double stall_seconds() const { return stall_seconds_; }  // that load() waited or worked on the caller's thread, so far

 private:
  struct Job {
    Batch rows;
    int64_t draw;
    bool taken = false, done = false;
    Examples result;
    std::exception_ptr error;
  };
  void work();
  Examples read(const Batch& rows, int64_t draw) const;
  void add_partners(Examples& examples, const Batch& rows, int64_t draw) const;

  const Source& source_;
  uint64_t seed_;
  std::vector<std::thread> threads_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::mutex mutex_;
  std::condition_variable wake_, ready_;
  bool stop_ = false;
  double stall_seconds_ = 0;
};

}  // namespace huajin
