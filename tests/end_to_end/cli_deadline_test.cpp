// With --budget T the process has ended with a verified checkpoint by T, also on a machine that becomes twice as slow in the middle.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

class CliDeadline : public testing::Test {
 protected:
  Ran train(const char* budget, const HowToRun& how) {
    return run_huajin({"train", "--data", text_, "--runs-dir", runs_, "--run", "timed", "--budget", budget, "--quiet"}, how);
  }
  void expect_verified() {
    EXPECT_EQ(run_huajin({"verify", "timed", "--runs-dir", runs_}).code, 0);
    EXPECT_NE(json_value(read_text(runs_ + "/timed/result.json"), "val_bits_per_byte"), "null") << "the evaluation was cut short";
  }
  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", words(300000));
  std::string runs_ = folder_.path() + "/runs";
};

TEST_F(CliDeadline, TenSecondsAllIn) {
  const Ran ran = train("10s", {});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_LE(ran.seconds, 10.0);
  EXPECT_GE(ran.seconds, 6.0) << "time that was paid for is used";
  expect_verified();
}

TEST_F(CliDeadline, TwiceAsSlowInTheMiddle) {
  HowToRun how;
  std::atomic<bool> ended = false;
  // Stopped half of the time, in slices of 20 ms, from the sixth second on: for the process that is a machine of half the speed.
  how.meanwhile = [&](pid_t child) {
    std::this_thread::sleep_for(std::chrono::seconds(6));
    while (!ended && kill(child, SIGSTOP) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      kill(child, SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::string stat = read_text("/proc/" + std::to_string(child) + "/stat");
      if (stat.empty() || stat.find(") Z") != std::string::npos) break;
    }
  };
  const Ran ran = train("14s", how);
  ended = true;
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_LE(ran.seconds, 14.1);  // a slice of standstill may come after the last instruction
  expect_verified();
}

}  // namespace
}  // namespace huajin::test
