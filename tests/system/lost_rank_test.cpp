// A rank that dies, stops, leaves or skips a collective ends the others in time, and they say who it was. Starts mpirun with rank_probe.cpp.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Probe {
  std::string output;
  double seconds = 0;
  int status = 0;
};

Probe probe(const std::string& mode, int ranks, const std::string& transport, double timeout) {
  const std::string command = "timeout 60 " HUAJIN_MPIRUN " -n " + std::to_string(ranks) + " " HUAJIN_RANK_PROBE " " + mode + " " + std::to_string(timeout) + " " + transport + " 2>&1";
  const auto began = std::chrono::steady_clock::now();
  Probe run;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part;
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) run.output.append(part.data(), n);
  run.status = WEXITSTATUS(pclose(pipe));
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return run;
}

// Both other ranks of three must say so, each in its own line.
void expect_named(const Probe& run, const std::string& fate, const std::string& collective) {
  for (const char* who : {"rank 0", "rank 2"}) {
    bool found = false;
    for (size_t at = 0; (at = run.output.find("error: ", at)) != std::string::npos; ++at) {
      const std::string line = run.output.substr(at, run.output.find('\n', at) - at);
      found = found || (line.find("rank 1") != std::string::npos && line.find(fate) != std::string::npos && line.find(collective) != std::string::npos && line.find(who) != std::string::npos);
    }
    EXPECT_TRUE(found) << who << " did not say that rank 1 " << fate << ":\n" << run.output;
  }
  EXPECT_NE(run.status, 0);
}

TEST(LostRank, KilledIsNamedAtOnce) {
  const Probe run = probe("kill", 3, "shared_memory", 10);
  expect_named(run, "died", "sum of 1002 Float");
  EXPECT_LT(run.seconds, 8);
}

TEST(LostRank, KilledDuringABackgroundSum) {
  const Probe run = probe("background-kill", 3, "shared_memory", 10);
  expect_named(run, "died", "sum of gradients (1002 float32)");
  EXPECT_LT(run.seconds, 8);
}

TEST(LostRank, StoppedIsNamedAfterTheTimeout) {
  const Probe run = probe("stop", 3, "shared_memory", 2);
  expect_named(run, "is stopped", "sum of 1002 Float");
  EXPECT_LT(run.seconds, 10);
  EXPECT_EQ(run.status, 5) << run.output;
}

TEST(LostRank, WhoSkipsACollectiveIsNamed) {
  const Probe run = probe("skip", 3, "shared_memory", 2);
  expect_named(run, "was last in sum of 1001 Float", "sum of 1002 Float");
  EXPECT_LT(run.seconds, 10);
  EXPECT_EQ(run.status, 5) << run.output;
}

TEST(LostRank, AnotherCollectiveIsAMismatchAtOnce) {
  const Probe run = probe("other", 3, "shared_memory", 10);
  expect_named(run, "is in another collective", "barrier at another place");
  EXPECT_LT(run.seconds, 8);
}

TEST(LostRank, AnErrorOnOneRankEndsAll) {
  const Probe run = probe("throw", 3, "shared_memory", 10);
  expect_named(run, "left the run", "sum of 1002 Float");
  EXPECT_NE(run.output.find("a hook failed"), std::string::npos) << run.output;
  EXPECT_LT(run.seconds, 8);
}

TEST(LostRank, LateIsNotLost) {
  const Probe run = probe("late", 3, "shared_memory", 3);
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_NE(run.output.find("done"), std::string::npos);
}

TEST(LostRank, OverMpiTheRollIsCalled) {
  const Probe stopped = probe("stop", 3, "mpi", 2);
  expect_named(stopped, "does not answer", "sum of 1002 Float");
  EXPECT_LT(stopped.seconds, 10);
  const Probe skipped = probe("skip", 3, "mpi", 2);
  expect_named(skipped, "does not answer", "sum of 1002 Float");
  EXPECT_LT(skipped.seconds, 10);
}

TEST(LostRank, SumsAreFastEnough) {
  double best = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Probe run = probe("bandwidth", 2, "auto", 10);
    const size_t at = run.output.find("move ");
    ASSERT_NE(at, std::string::npos) << run.output;
    best = std::max(best, std::atof(run.output.c_str() + at + 5));
  }
  RecordProperty("gigabytes_per_second", std::to_string(best));
  EXPECT_GT(best, 0.5) << "far below what shared memory gives even on a busy machine; bench: rank_probe bandwidth, aim 3";
}

}  // namespace
