#include "huajin/system/data/data_parallel/mpi_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

constexpr int64_t kMpiPieceBytes = 4 << 20;
constexpr int kRollTag = 77;
constexpr double kRollSeconds = 1;
constexpr size_t kRollBytes = 112;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

class MpiTransport : public Transport {
 public:
  MpiTransport(MPI_Comm communicator, double timeout_seconds) : comm_(communicator), timeout_(timeout_seconds) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &ranks_);
  }

  void reduce(void* data, int64_t count, Wire wire, const std::string& what) override {
    begin(what);
    const int64_t size = bytes_of(wire), piece = kMpiPieceBytes / size;
    for (int64_t at = 0; at < count; at += piece) reduce_piece(static_cast<char*>(data) + at * size, std::min(piece, count - at), wire);
  }

  void broadcast(void* data, int64_t bytes, int from, const std::string& what) override {
    begin(what);
    for (int64_t at = 0; at < bytes; at += kMpiPieceBytes) {
      MPI_Request request;
      check(MPI_Ibcast(static_cast<char*>(data) + at, static_cast<int>(std::min(kMpiPieceBytes, bytes - at)), MPI_BYTE, from, comm_, &request));
      wait(request);
    }
    if (bytes == 0) barrier(what);
  }

  void gather(const void* part, int64_t bytes, void* all, const std::string& what) override {
    begin(what);
    std::vector<char> pieces;
    for (int64_t at = 0; at < bytes; at += kMpiPieceBytes) {
      const int64_t n = std::min(kMpiPieceBytes, bytes - at);
      pieces.resize(static_cast<size_t>(n * ranks_));
      MPI_Request request;
      check(MPI_Iallgather(static_cast<const char*>(part) + at, static_cast<int>(n), MPI_BYTE, pieces.data(), static_cast<int>(n), MPI_BYTE, comm_, &request));
      wait(request);
      for (int r = 0; r < ranks_; ++r) std::memcpy(static_cast<char*>(all) + r * bytes + at, pieces.data() + r * n, static_cast<size_t>(n));
    }
  }

  void barrier(const std::string& what) override {
    begin(what);
    MPI_Request request;
    check(MPI_Ibarrier(comm_, &request));
    wait(request);
  }

 private:
  void begin(const std::string& what) {
    ++number_;
    what_ = what;
  }

  void reduce_piece(char* data, int64_t n, Wire wire) {
    const int64_t size = bytes_of(wire), mine = share_begin(n, rank_, ranks_), share = (share_begin(n, rank_ + 1, ranks_) - mine) * size;
    std::vector<int> send(ranks_), send_at(ranks_), receive(ranks_), receive_at(ranks_);
    for (int r = 0; r < ranks_; ++r) {
      send_at[r] = static_cast<int>(share_begin(n, r, ranks_) * size);
      send[r] = static_cast<int>(share_begin(n, r + 1, ranks_) * size) - send_at[r];
      receive[r] = static_cast<int>(share);
      receive_at[r] = static_cast<int>(r * share);
    }
    parts_.resize(static_cast<size_t>(share * ranks_));
    MPI_Request request;
    check(MPI_Ialltoallv(data, send.data(), send_at.data(), MPI_BYTE, parts_.data(), receive.data(), receive_at.data(), MPI_BYTE, comm_, &request));
    wait(request);
    std::vector<const void*> sources(ranks_);
    for (int r = 0; r < ranks_; ++r) sources[r] = parts_.data() + r * share;
    reduce_in_order(wire, sources.data(), ranks_, share / size, data + mine * size, nullptr);
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, send.data(), send_at.data(), MPI_BYTE, comm_, &request));
    wait(request);
  }

  void check(int code) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw Error(kExitRankLost, "rank " + std::to_string(rank_) + ", collective " + what_ + ": " + text + "; a rank died, skipped a call or has tensors of another size");
  }

  void wait(MPI_Request request) {
    const auto began = Clock::now();
    for (int64_t look = 0;; ++look) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done) return;
      if (look < 200) continue;
      const double waited = seconds_since(began);
      if (abandoned_.load(std::memory_order_relaxed)) throw Error(kExitInternal, "collective " + what_ + ": given up");
      if (waited > timeout_) call_roll(waited);
      if (waited > 0.002) std::this_thread::sleep_for(std::chrono::microseconds(50));
      else std::this_thread::yield();
    }
  }

  // Everyone who waits tells everyone where it waits; who says nothing is dead, stopped or elsewhere.
  [[noreturn]] void call_roll(double waited) {
    char own[kRollBytes] = {};
    std::memcpy(own, &number_, sizeof number_);
    std::strncpy(own + sizeof number_, what_.c_str(), kRollBytes - sizeof number_ - 1);
    std::vector<MPI_Request> sends(ranks_, MPI_REQUEST_NULL);
    for (int r = 0; r < ranks_; ++r)
      if (r != rank_) MPI_Isend(own, kRollBytes, MPI_BYTE, r, kRollTag, comm_, &sends[r]);
    std::vector<std::string> answer(ranks_);
    for (const auto began = Clock::now(); seconds_since(began) < kRollSeconds; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      int there = 0;
      MPI_Status status;
      if (MPI_Iprobe(MPI_ANY_SOURCE, kRollTag, comm_, &there, &status) != MPI_SUCCESS || !there) continue;
      char text[kRollBytes] = {};
      MPI_Recv(text, kRollBytes, MPI_BYTE, status.MPI_SOURCE, kRollTag, comm_, MPI_STATUS_IGNORE);
      uint64_t number;
      std::memcpy(&number, text, sizeof number);
      text[kRollBytes - 1] = 0;
      answer[status.MPI_SOURCE] = number == number_ ? "here" : std::string("waits in collective ") + (text + sizeof number) + " instead";
    }
    std::string lost;
    for (int r = 0; r < ranks_; ++r)
      if (r != rank_ && answer[r] != "here")
        lost += (lost.empty() ? "rank " : "; rank ") + std::to_string(r) + (answer[r].empty() ? " does not answer (it died, is stopped, or skipped a call)" : " " + answer[r]);
    if (lost.empty()) lost = "all ranks are there, but the network moves nothing";
    throw Error(kExitRankLost, lost + "; rank " + std::to_string(rank_) + " waited " + std::to_string(static_cast<int>(waited + 0.5)) + " s in collective " + what_);
  }

  MPI_Comm comm_;
  double timeout_;
  int rank_ = 0, ranks_ = 1;
  uint64_t number_ = 0;
  std::string what_;
  std::vector<char> parts_;
};

}  // namespace

std::unique_ptr<Transport> mpi_transport(MPI_Comm communicator, double timeout_seconds) { return std::make_unique<MpiTransport>(communicator, timeout_seconds); }

}  // namespace huajin
