#include "huajin/core/budget.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(Budget, ParsesEveryUnit) {
  EXPECT_EQ(parse_limits("90s", "x").seconds, 90);
  EXPECT_EQ(parse_limits("10m", "x").seconds, 600);
  EXPECT_EQ(parse_limits("2h", "x").seconds, 7200);
  EXPECT_EQ(parse_limits("1.5 min", "x").seconds, 90);
  EXPECT_EQ(parse_limits("500step", "x").steps, 500);
  EXPECT_EQ(parse_limits("2ksteps", "x").steps, 2000);
  EXPECT_EQ(parse_limits("50Mtok", "x").tokens, 50e6);
  EXPECT_EQ(parse_limits("10ksample", "x").examples, 10000);
  EXPECT_EQ(parse_limits("3epoch", "x").epochs, 3);
  EXPECT_EQ(parse_limits("1e15flop", "x").flops, 1e15);
  EXPECT_EQ(parse_limits("1e+15flop", "x").flops, 1e15);
  const Limits both = parse_limits(" 2h, 500step + 1h ", "x");
  EXPECT_EQ(both.seconds, 3600);
  EXPECT_EQ(both.steps, 500);
  EXPECT_EQ(both.tokens, Limits::kNone);
  EXPECT_TRUE(both.any());
  EXPECT_FALSE(Limits{}.any());
}

TEST(Budget, TextReadsBackAsItself) {
  for (auto* text : {"90s", "1.5m", "2h, 500step", "50Mtok,10ksample", "0.25epoch", "3.5e15flop"}) {
    const Limits limits = parse_limits(text, "x"), again = parse_limits(to_string(limits), "x");
    EXPECT_EQ(to_string(again), to_string(limits)) << text;
    EXPECT_EQ(again.seconds, limits.seconds);
    EXPECT_EQ(again.flops, limits.flops);
    EXPECT_EQ(again.epochs, limits.epochs);
  }
}

TEST(Budget, RefusesWhatMeansNothing) {
  for (auto* text : {"", " ", "10", "s", "-5m", "0s", "0step", "5parsec", "1e999s", "nans", "infs", "10s,,5step", "10s,", "0x10s", "10 000s", "M",
                     "5M", "1e15 e"}) {
    try {
      parse_limits(text, "--budget");
      ADD_FAILURE() << "accepted \"" << text << "\"";
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find("--budget"), 0u) << message;
      EXPECT_NE(message.find("500step"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  }
}

Progress at(int64_t step) {
  Progress p;
  p.step = p.draw = step;
  p.examples = 8 * step;
  p.tokens = 8 * 128 * step;
  p.flops = 1e9 * static_cast<double>(step);
  return p;
}

TEST(Budget, NearestLimitCounts) {
  const Budget budget(parse_limits("100s, 1000step", "x"), 0, 1e6, true);
  EXPECT_DOUBLE_EQ(budget.fraction(at(100), 50), 0.5);
  EXPECT_DOUBLE_EQ(budget.fraction(at(900), 50), 0.9);
  EXPECT_EQ(budget.fraction(at(2000), 50), 1);
  EXPECT_DOUBLE_EQ(Budget(parse_limits("1024000tok", "x"), 0, 1, true).fraction(at(500), 0), 0.5);
  EXPECT_DOUBLE_EQ(Budget(parse_limits("80sample", "x"), 0, 1, true).fraction(at(5), 0), 0.5);
  EXPECT_DOUBLE_EQ(Budget(parse_limits("2epoch", "x"), 0, 8 * 128 * 10, true).fraction(at(10), 0), 0.5);
  EXPECT_DOUBLE_EQ(Budget(parse_limits("2epoch", "x"), 0, 80, false).fraction(at(10), 0), 0.5);
  EXPECT_DOUBLE_EQ(Budget(parse_limits("1e12flop", "x"), 0, 1, true).fraction(at(250), 0), 0.25);
}

TEST(Budget, ReservedTimeIsNotTrainedAway) {
  Budget budget(parse_limits("100s", "x"), 0, 0, true);
  budget.reserve(20);
  EXPECT_DOUBLE_EQ(budget.fraction(at(1), 40), 0.5);
  EXPECT_EQ(budget.fraction(at(1), 80), 1);
  budget.reserve(200);  // more than there is: stop at once
  EXPECT_EQ(budget.fraction(at(1), 0), 1);
}

// A run on a clock of its own: steps take what the test says. A linear schedule must reach its floor within 1 % of the budget, without running
// over it, whatever the machine does: F10 of the users' troubles.
struct FakeRun {
  double rate = 1, elapsed = 0;
  void go(Budget& budget, double limit, const std::function<double(double)>& step_seconds, double until) {
    Progress progress;
    while (budget.fraction(progress, elapsed) < until) {
      rate = 1 - budget.fraction(progress, elapsed);
      elapsed += step_seconds(elapsed);
      progress.step++;
      ASSERT_LE(elapsed, limit + step_seconds(elapsed));
    }
  }
};

TEST(Budget, ScheduleReachesItsFloorOnTime) {
  const double limit = 60;
  const std::function<double(double)> steady = [](double) { return 0.05; }, halved = [](double t) { return t < 30 ? 0.05 : 0.1; };
  for (auto& machine : {steady, halved}) {
    Budget budget(parse_limits("60s", "x"), 0, 0, true);
    budget.reserve(5);
    FakeRun run;
    run.go(budget, limit, machine, 1);
    EXPECT_LT(run.rate, 0.01);
    EXPECT_GE(run.elapsed, 55);
    EXPECT_LE(run.elapsed, 55.2);
  }
  // killed in the middle, resumed: the second part begins where the first one ended
  Budget first(parse_limits("60s", "x"), 0, 0, true);
  FakeRun run;
  run.go(first, limit, steady, 0.5);
  Budget second(parse_limits("60s", "x"), run.elapsed, 0, true);
  EXPECT_NEAR(second.fraction(at(0), run.elapsed), 0.5, 0.01);
  EXPECT_GE(second.elapsed(), run.elapsed);
  run.go(second, limit, halved, 1);
  EXPECT_LT(run.rate, 0.01);
  EXPECT_NEAR(run.elapsed, 60, 0.2);
}

TEST(Budget, ClockCountsFromTheProcessStart) {
  const double before = seconds_since_start();
  EXPECT_GE(before, 0);
  EXPECT_LT(before, 3600);  // not since boot
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double passed = seconds_since_start() - before;
  EXPECT_GE(passed, 0.05);
  EXPECT_LT(passed, 5);
}

}  // namespace
}  // namespace huajin
