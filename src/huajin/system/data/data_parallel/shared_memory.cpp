#include "huajin/system/data/data_parallel/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

constexpr int64_t kSlotBytes = 1 << 20;          // of each rank, channel and parity; less for many ranks, as /dev/shm may be small
constexpr int64_t kMostSegmentBytes = 32 << 20;
constexpr int kMostRanks = 256;
constexpr int64_t kWhatBytes = 96;
constexpr auto kLookAfter = std::chrono::milliseconds(20);  // between looks at who is still there

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

inline void breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// 'R', 'S', 'T' (stopped), 'Z' ...; 0: no such process.
char process_state(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return 0;
  const size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() ? text[end + 2] : '?';
}

}  // namespace

struct alignas(64) SharedSegment::Rank {
  std::atomic<int> pid;
  std::atomic<int> left;
};
struct alignas(64) SharedSegment::Channel {
  std::atomic<uint32_t> bell;  // rung at every arrival
  std::atomic<uint32_t> sleepers;
  struct alignas(64) Seat {
    std::atomic<uint64_t> round;       // reached by this rank
    std::atomic<uint64_t> signature[2];  // of its collective, by parity of the collective's number
    char what[kWhatBytes];             // read only to say what went wrong
  } seats[1];                          // as many as ranks
};

SharedSegment::SharedSegment(std::string name, int rank, int ranks) : name_(std::move(name)), rank_(rank), ranks_(ranks) {
  if (ranks > kMostRanks) throw UserError("layout.data: " + std::to_string(ranks) + " ranks on one machine; at most " + std::to_string(kMostRanks));
  slot_bytes_ = std::clamp<int64_t>(kMostSegmentBytes / (kChannels * 2 * ranks) / 4096 * 4096, 65536, kSlotBytes);
  const int64_t seats = static_cast<int64_t>(sizeof(Channel)) + (ranks - 1) * static_cast<int64_t>(sizeof(Channel::Seat));
  bytes_ = round_up(ranks * static_cast<int64_t>(sizeof(Rank)), 4096) + kChannels * round_up(seats, 4096) + int64_t{kChannels} * ranks * 2 * slot_bytes_;
}

SharedSegment::Rank& SharedSegment::rank_of(int rank) const { return reinterpret_cast<Rank*>(base_)[rank]; }
SharedSegment::Channel& SharedSegment::channel(int index) const {
  const int64_t seats = static_cast<int64_t>(sizeof(Channel)) + (ranks_ - 1) * static_cast<int64_t>(sizeof(Channel::Seat));
  return *reinterpret_cast<Channel*>(base_ + round_up(ranks_ * static_cast<int64_t>(sizeof(Rank)), 4096) + index * round_up(seats, 4096));
}
char* SharedSegment::slot(int channel, int rank, int parity) const {
  return base_ + bytes_ - int64_t{kChannels} * ranks_ * 2 * slot_bytes_ + ((int64_t{channel} * ranks_ + rank) * 2 + parity) * slot_bytes_;
}

void SharedSegment::map(int descriptor) {
  void* at = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (at == MAP_FAILED) throw UserError("shared memory: cannot map " + name_ + ": " + std::strerror(errno));
  base_ = static_cast<char*>(at);
}

void SharedSegment::enter() { rank_of(rank_).pid.store(getpid()); }

std::shared_ptr<SharedSegment> SharedSegment::create(const std::string& name, int rank, int ranks) {
  std::shared_ptr<SharedSegment> segment(new SharedSegment(name, rank, ranks));
  const int descriptor = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (descriptor < 0) throw UserError("shared memory: cannot create " + name + ": " + std::strerror(errno));
  segment->linked_ = true;
  if (const int error = posix_fallocate(descriptor, 0, segment->bytes_); error != 0) {  // here, not as SIGBUS in the middle of a run
    close(descriptor);
    throw UserError("shared memory: no " + std::to_string(segment->bytes_ >> 20) + " MB in /dev/shm: " + std::strerror(error));
  }
  segment->map(descriptor);
  segment->enter();
  return segment;
}

std::shared_ptr<SharedSegment> SharedSegment::open(const std::string& name, int rank, int ranks) {
  std::shared_ptr<SharedSegment> segment(new SharedSegment(name, rank, ranks));
  const int descriptor = shm_open(name.c_str(), O_RDWR, 0600);
  if (descriptor < 0) throw UserError("shared memory: cannot open " + name + ": " + std::strerror(errno));
  segment->map(descriptor);
  segment->enter();
  return segment;
}

SharedSegment::~SharedSegment() {
  unlink();
  if (base_ != nullptr) munmap(base_, static_cast<size_t>(bytes_));
}
void SharedSegment::unlink() {
  if (linked_) shm_unlink(name_.c_str());
  linked_ = false;
}

void SharedSegment::leave() {
  rank_of(rank_).left.store(1);
  for (int c = 0; c < kChannels; ++c) {
    channel(c).bell.fetch_add(1);
    syscall(SYS_futex, &channel(c).bell, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
}

void SharedSegment::look_for_processes() {
  sees_processes_ = true;  // false in containers of their own: then only the time-out tells
  for (int r = 0; r < ranks_; ++r) sees_processes_ = sees_processes_ && process_state(rank_of(r).pid.load()) != 0;
}

namespace {

class SharedMemoryTransport : public Transport {
 public:
  SharedMemoryTransport(std::shared_ptr<SharedSegment> segment, int channel, double timeout_seconds, int spins)
      : segment_(std::move(segment)), index_(channel), channel_(segment_->channel(channel)), timeout_(timeout_seconds), spins_(spins), rank_(segment_->rank()), ranks_(segment_->ranks()) {}

  void reduce(void* data, int64_t count, Wire wire, const std::string& what) override {
    const int64_t size = bytes_of(wire), piece = segment_->slot_bytes() / size;
    begin(what, 1, count, static_cast<int>(wire));
    int64_t at = 0;
    do {
      reduce_piece(static_cast<char*>(data) + at * size, std::min(piece, count - at), wire);
      at += piece;
    } while (at < count);
  }

  void broadcast(void* data, int64_t bytes, int from, const std::string& what) override {
    begin(what, 2, bytes, from);
    int64_t at = 0;
    do {
      const int64_t n = std::min(segment_->slot_bytes(), bytes - at);
      if (rank_ == from) std::memcpy(slot(rank_), static_cast<char*>(data) + at, static_cast<size_t>(n));
      meet();
      if (rank_ != from) std::memcpy(static_cast<char*>(data) + at, slot(from), static_cast<size_t>(n));
      parity_ ^= 1;
      at += n;
    } while (at < bytes);
  }

  void gather(const void* part, int64_t bytes, void* all, const std::string& what) override {
    begin(what, 3, bytes, 0);
    int64_t at = 0;
    do {
      const int64_t n = std::min(segment_->slot_bytes(), bytes - at);
      std::memcpy(slot(rank_), static_cast<const char*>(part) + at, static_cast<size_t>(n));
      meet();
      for (int r = 0; r < ranks_; ++r) std::memcpy(static_cast<char*>(all) + r * bytes + at, slot(r), static_cast<size_t>(n));
      parity_ ^= 1;
      at += n;
    } while (at < bytes);
  }

  void barrier(const std::string& what) override {
    begin(what, 4, 0, 0);
    meet();
    parity_ ^= 1;
  }

 private:
  using Channel = SharedSegment::Channel;
  char* slot(int rank) const { return segment_->slot(index_, rank, parity_); }

  void begin(const std::string& what, int kind, int64_t size, int detail) {
    auto& seat = channel_.seats[rank_];
    ++number_;
    what_ = what;
    std::snprintf(seat.what, kWhatBytes, "%s", what.c_str());
    seat.signature[number_ & 1].store((static_cast<uint64_t>(size) * 16 + static_cast<uint64_t>(kind)) * 1024 + static_cast<uint64_t>(detail), std::memory_order_relaxed);
    fresh_ = true;
  }

  // Slots of one parity are free again two pieces later: who has come to the first meeting of the piece between has read them.
  void reduce_piece(char* data, int64_t n, Wire wire) {
    const int64_t size = bytes_of(wire), mine = share_begin(n, rank_, ranks_), end = share_begin(n, rank_ + 1, ranks_);
    std::memcpy(slot(rank_), data, static_cast<size_t>(mine * size));
    std::memcpy(slot(rank_) + end * size, data + end * size, static_cast<size_t>((n - end) * size));
    meet();
    const void* sources[kMostRanks];
    for (int r = 0; r < ranks_; ++r) sources[r] = (r == rank_ ? data : slot(r)) + mine * size;
    reduce_in_order(wire, sources, ranks_, end - mine, data + mine * size, slot(rank_) + mine * size);
    meet();
    for (int r = 0; r < ranks_; ++r) {
      if (r == rank_) continue;
      const int64_t from = share_begin(n, r, ranks_), to = share_begin(n, r + 1, ranks_);
      std::memcpy(data + from * size, slot(r) + from * size, static_cast<size_t>((to - from) * size));
    }
    parity_ ^= 1;
  }

  // All ranks have come to this round. The first of a collective also compares what they came for.
  void meet() {
    ++round_;
    channel_.seats[rank_].round.store(round_);
    channel_.bell.fetch_add(1);
    if (channel_.sleepers.load() > 0) syscall(SYS_futex, &channel_.bell, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    for (int r = 0; r < ranks_; ++r)
      if (r != rank_) wait_for(r);
    if (!fresh_) return;
    fresh_ = false;
    const uint64_t own = channel_.seats[rank_].signature[number_ & 1].load();
    for (int r = 0; r < ranks_; ++r)
      if (channel_.seats[r].signature[number_ & 1].load() != own)
        throw Error(kExitRankLost, "rank " + std::to_string(r) + " is in another collective (" + channel_.seats[r].what + ") than rank " + std::to_string(rank_) + " (" + what_ +
                                       "): one of them skipped a call or has tensors of another size");
  }

  void wait_for(int r) {
    const auto& round = channel_.seats[r].round;
    for (int i = 0; i < spins_; ++i) {
      if (round.load(std::memory_order_acquire) >= round_) return;
      breathe();
    }
    const auto began = std::chrono::steady_clock::now();
    while (true) {
      const uint32_t bell = channel_.bell.load();
      if (round.load() >= round_) return;
      channel_.sleepers.fetch_add(1);
      const timespec limit{0, std::chrono::nanoseconds(kLookAfter).count()};
      const bool rung = syscall(SYS_futex, &channel_.bell, FUTEX_WAIT, bell, &limit, nullptr, 0) == 0 || errno == EAGAIN;
      channel_.sleepers.fetch_sub(1);
      if (round.load() >= round_) return;
      const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      look(rung, waited);
    }
  }

  void look(bool rung, double waited) {
    if (abandoned_.load(std::memory_order_relaxed)) throw Error(kExitInternal, "collective " + what_ + ": given up");
    std::string lost;
    for (int r = 0; r < ranks_; ++r) {
      if (channel_.seats[r].round.load() >= round_) continue;
      const std::string fate = fate_of(r, rung, waited);
      if (fate.empty() || channel_.seats[r].round.load() >= round_) continue;
      lost += (lost.empty() ? "" : "; ") + ("rank " + std::to_string(r) + " (process " + std::to_string(segment_->rank_of(r).pid.load()) + ") " + fate);
    }
    if (!lost.empty()) throw Error(kExitRankLost, lost + "; rank " + std::to_string(rank_) + " waited " + std::to_string(static_cast<int>(waited + 0.5)) + " s for it in collective " + what_);
  }

  // "": it may still come.
  std::string fate_of(int r, bool rung, double waited) const {
    const auto& other = segment_->rank_of(r);
    const bool late = waited >= timeout_;
    if (other.left.load() != 0) return "left the run";
    if (rung && !late) return "";
    const char state = segment_->sees_processes() ? process_state(other.pid.load()) : '?';
    if (state == 0 || state == 'Z' || state == 'X') return "died";
    if (!late) return "";
    if (state == 'T' || state == 't') return "is stopped";
    return std::string("does not come; it was last in ") + (channel_.seats[r].what[0] != 0 ? channel_.seats[r].what : "nothing");
  }

  std::shared_ptr<SharedSegment> segment_;
  int index_;
  Channel& channel_;
  double timeout_;
  int spins_, rank_, ranks_, parity_ = 0;
  uint64_t round_ = 0, number_ = 0;
  bool fresh_ = false;
  std::string what_;
};

}  // namespace

std::unique_ptr<Transport> shared_memory_transport(std::shared_ptr<SharedSegment> segment, int channel, double timeout_seconds, int spins) {
  return std::make_unique<SharedMemoryTransport>(std::move(segment), channel, timeout_seconds, spins);
}

}  // namespace huajin
