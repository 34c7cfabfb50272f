// How bytes move between ranks, below the communicator: three collectives, watched. One object a thread that communicates, since each has its own order.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace huajin {

// What is added (or compared) and in which precision: 16-bit kinds are summed in float32 and rounded once.
enum class Wire { kFloat, kDouble, kBFloat16, kHalf, kInt64, kMaximum /* of doubles; NaN wins */ };
int64_t bytes_of(Wire wire);
const char* name_of(Wire wire);

// to[i] = sources[0][i] + sources[1][i] + ... in this order, and the same into `copy` unless it is null. `to` may be one of the sources.
void reduce_in_order(Wire wire, const void* const sources[], int count, int64_t n, void* to, void* copy);

// The part of n elements that `rank` reduces: begins on a cache line. share_begin(n, ranks, ranks) == n.
int64_t share_begin(int64_t n, int rank, int ranks);

// Every call is collective, in the same order on every rank. Each element is reduced by one rank, in rank order: all ranks get the same bits.
// A rank that dies, leaves, stops or is elsewhere makes the others throw Error(kExitRankLost) that names it and `what`.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void reduce(void* data, int64_t count, Wire wire, const std::string& what) = 0;  // in place
  virtual void broadcast(void* data, int64_t bytes, int from, const std::string& what) = 0;
  virtual void gather(const void* part, int64_t bytes, void* all, const std::string& what) = 0;  // all: ranks x bytes, in rank order
  virtual void barrier(const std::string& what) = 0;
  // From another thread: whoever waits throws soon. For leaving after an error.
  void abandon() { abandoned_.store(true, std::memory_order_relaxed); }

 protected:
  std::atomic<bool> abandoned_{false};
};

}  // namespace huajin
