#include "huajin/optim/averaging/lawa/lawa.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "conformance/bare_session.h"

namespace huajin {
namespace {

// After each of 20 updates with weights 1, 4, 9, ...: what is evaluated.
std::vector<double> evaluated(const LawaConfig& config) {
  BareSession session;
  Parameter& p = session.add("w", at::full({2}, -7.0, at::kDouble));
  Lawa lawa(config);
  lawa.setup(session);
  std::vector<double> seen;
  for (int i = 1; i <= 20; ++i) {
    p.value.fill_(i * i);
    Step step = session.step(session.at(i, (i - 1) / 20.0));
    lawa.after_step(step);
    lawa.evaluate(session, [&] { seen.push_back(p.value[0].item<double>()); });
  }
  return seen;
}

TEST(Lawa, IsTheMeanOfExactlyTheLastSnapshots) {
  const auto seen = evaluated({.snapshots = 3, .every = 4});
  for (int i = 1; i <= 20; ++i) {
    double sum = 0;
    int count = 0;
    for (int at = i / 4 * 4; at > 0 && count < 3; at -= 4, ++count) sum += at * at;
    EXPECT_NEAR(seen[static_cast<size_t>(i) - 1], count == 0 ? i * i : sum / count, 1e-12) << i;
  }
}

TEST(Lawa, OfOneIsTheLastSnapshot) {
  const auto seen = evaluated({.snapshots = 1, .every = 3});
  for (int i = 3; i <= 20; ++i) EXPECT_EQ(seen[static_cast<size_t>(i) - 1], (i / 3 * 3) * (i / 3 * 3)) << i;
}

TEST(Lawa, TakesASnapshotEachTimeAnIntervalOfTheBudgetHasPassed) {  // 0.25, 0.5, 0.75: the updates that begin there are 6, 11, 16
  const auto seen = evaluated({.snapshots = 2, .interval = 0.25});
  EXPECT_EQ(seen[4], 25);
  EXPECT_EQ(seen[5], 36);
  EXPECT_EQ(seen[9], 36);
  EXPECT_EQ(seen[10], (36 + 121) / 2.0);
  EXPECT_EQ(seen[19], (121 + 256) / 2.0);
}

}  // namespace
}  // namespace huajin
