#include "huajin/core/loader.h"

#include <ATen/ops/equal.h>

#include <omp.h>

#include <algorithm>
#include <chrono>

namespace huajin {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() || a.is_same(b) || (a.sizes() == b.sizes() && at::equal(a, b));
}

// Partners are not compared: they are loaded when asked for.
bool same_rows(const Batch& a, const Batch& b) { return a.length == b.length && same(a.id, b.id) && same(a.noise, b.noise); }

}  // namespace

Loader::Loader(const Source& source, uint64_t seed, int64_t workers) : source_(source), seed_(seed) {
  for (int64_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
}

Loader::~Loader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

Batch Loader::draw(const Draw& draw, const Progress& progress) const {
  const int64_t at = source_.classifies() ? progress.examples : progress.tokens;
  Batch batch;
  batch.length = draw.length;
  batch.id = source_.ids(seed_, at, draw.rows * draw.candidates, draw.length);
  return batch;
}

Examples Loader::read(const Batch& rows, int64_t draw) const {
  return source_.load(rows.id, rows.length, rows.noise.defined() ? rows.noise : rows.id, draw, true);
}

// The partner has its own stream, so that a pair does not share its crop.
void Loader::add_partners(Examples& examples, const Batch& rows, int64_t draw) const {
  examples.index = rows;
  if (!rows.partner.defined()) return;
  Examples partner = source_.load(rows.partner, rows.length, rows.partner, draw, true);
  examples.partner_inputs = partner.inputs;
  examples.partner_targets = partner.targets;
}

void Loader::announce(const Batch& rows, int64_t draw) {
  if (threads_.empty() || rows.rows() == 0) return;
  auto job = std::make_shared<Job>();
  job->rows = rows;
  job->draw = draw;
  {
    std::lock_guard lock(mutex_);
    while (jobs_.size() > 64) jobs_.pop_front();  // announced and never asked for
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

Examples Loader::load(const Batch& rows, int64_t draw) {
  const auto start = std::chrono::steady_clock::now();
  const auto account = [&] { stall_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::shared_ptr<Job> found;
  {
    std::unique_lock lock(mutex_);
    while (!jobs_.empty() && jobs_.front()->draw < draw && (jobs_.front()->done || !jobs_.front()->taken)) jobs_.pop_front();
    for (auto& job : jobs_)
      if (job->draw == draw && same_rows(job->rows, rows)) found = job;
    if (found && !found->taken) {  // nobody has begun: do it here
      jobs_.erase(std::find(jobs_.begin(), jobs_.end(), found));
      found = nullptr;
    }
    if (found) ready_.wait(lock, [&] { return found->done; });
  }
  if (found && found->error) std::rethrow_exception(found->error);
  Examples examples = found ? found->result : read(rows, draw);
  add_partners(examples, rows, draw);
  account();
  return examples;
}

void Loader::work() {
  omp_set_num_threads(1);  // of this thread's own team: the cores belong to the step
  while (true) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      const auto free_job = [&]() -> std::shared_ptr<Job> {
        for (auto& candidate : jobs_)
          if (!candidate->taken) return candidate;
        return nullptr;
      };
      wake_.wait(lock, [&] { return stop_ || free_job(); });
      if (stop_) return;
      job = free_job();
      job->taken = true;
    }
    try {
      job->result = read(job->rows, job->draw);
    } catch (...) {
      job->error = std::current_exception();
    }
    {
      std::lock_guard lock(mutex_);
      job->done = true;
    }
    ready_.notify_all();
  }
}

}  // namespace huajin
