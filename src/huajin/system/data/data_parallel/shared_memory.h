// Collectives between the processes of one machine through POSIX shared memory: a rank writes what others reduce, reduces its own share, and reads theirs.
// Faster than MPI's for 4 MB pieces, and it knows at once who died or left. Waiting sleeps on a futex, so that it takes no time from who computes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "huajin/system/data/data_parallel/transport.h"

namespace huajin {

class SharedSegment {
 public:
  // Rank 0 creates, the others open after it has (the caller's rendezvous); `unlink()` once all have. Throws Error(kExitUsage) where /dev/shm is full or not there.
  static std::shared_ptr<SharedSegment> create(const std::string& name, int rank, int ranks);
  static std::shared_ptr<SharedSegment> open(const std::string& name, int rank, int ranks);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  void unlink();
  // Others that wait for this rank know at once that it will not come.
  void leave();

  static constexpr int kChannels = 2;
  struct Rank;     // what a rank says of itself
  struct Channel;  // the round that each rank has reached
  Rank& rank_of(int rank) const;
  Channel& channel(int index) const;
  char* slot(int channel, int rank, int parity) const;
  int64_t slot_bytes() const { return slot_bytes_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool sees_processes() const { return sees_processes_; }
  void look_for_processes();  // once all have opened it

 private:
  SharedSegment(std::string name, int rank, int ranks);
  void map(int descriptor);
  void enter();
  std::string name_;
  int rank_, ranks_;
  int64_t slot_bytes_, bytes_;
  char* base_ = nullptr;
  bool linked_ = false, sees_processes_ = false;
};

// `spins`: how long to look before sleeping. Small for a thread beside one that computes.
std::unique_ptr<Transport> shared_memory_transport(std::shared_ptr<SharedSegment> segment, int channel, double timeout_seconds, int spins);

}  // namespace huajin
