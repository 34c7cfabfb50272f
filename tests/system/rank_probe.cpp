// Run under mpirun by lost_rank_test.cpp and by hand: rank_probe MODE [timeout seconds] [transport].
//   bandwidth            prints the self-test's line
//   kill | stop | quit | skip | other | throw     rank 1 misbehaves before its third sum; the others end with exit code 5 and one line
//   background-kill      the same inside start_sum / finish_sums
//   late                 rank 1 comes late but before the time-out: all is well
#include <ATen/ops/full.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "huajin/core/errors.h"
#include "huajin/system/data/data_parallel/launch.h"
#include "huajin/system/data/data_parallel/replicas.h"

namespace {
using huajin::Communicator;

void misbehave(const std::string& mode, Communicator& communicator, double timeout) {
  if (mode == "kill" || mode == "background-kill") std::raise(SIGKILL);
  if (mode == "stop") std::raise(SIGSTOP);
  if (mode == "quit") std::_Exit(0);
  if (mode == "throw") throw huajin::UserError("rank 1: a hook failed");
  if (mode == "other") communicator.barrier("another place");
  if (mode == "skip") std::this_thread::sleep_for(std::chrono::duration<double>(3 * timeout));
  if (mode == "late") std::this_thread::sleep_for(std::chrono::duration<double>(0.5 * timeout));
}

int work(const std::string& mode, Communicator& communicator, double timeout) {
  if (mode == "bandwidth") {
    const std::string line = huajin::self_test(communicator, 1);
    if (communicator.rank() == 0) std::printf("%s\n", line.c_str());
    return 0;
  }
  for (int i = 0; i < 5; ++i) {
    at::Tensor numbers = at::full({1000 + i}, 1.0, at::kFloat);
    if (i == 2 && communicator.rank() == 1) misbehave(mode, communicator, timeout);
    if (mode == "background-kill") {
      communicator.start_sum({&numbers, 1});
      communicator.finish_sums();
    } else {
      communicator.sum(numbers);
    }
  }
  if (communicator.rank() == 0) std::printf("done\n");
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "bandwidth";
  huajin::LaunchOptions options;
  if (argc > 2) options.timeout_seconds = std::atof(argv[2]);
  if (argc > 3) options.transport = argv[3];
  try {
    const auto launched = huajin::launch(options);
    if (mode == "bandwidth" && launched.communicator->rank() == 0) std::printf("%s\n", launched.description.c_str());
    return work(mode, *launched.communicator, options.timeout_seconds);
  } catch (const huajin::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    std::fflush(stderr);
    return error.code();
  }
}
