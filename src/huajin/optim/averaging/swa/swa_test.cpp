#include "huajin/optim/averaging/swa/swa.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "conformance/bare_session.h"
#include "huajin/core/keyed.h"

namespace huajin {
namespace {

// Weights 1, 4, 9, ... after updates 1, 2, 3, ...; what the average is at the end.
double average_of_squares(const SwaConfig& config, int updates) {
  BareSession session;
  Parameter& p = session.add("w", at::full({2}, -7.0, at::kDouble));  // the value before the first update has no part in it
  Swa swa(config);
  swa.setup(session);
  for (int i = 1; i <= updates; ++i) {
    p.value.fill_(i * i);
    Step step = session.step(session.at(i, (i - 1.0) / updates));  // after_step: the fraction is still that of the step's start
    swa.after_step(step);
  }
  double seen = 0;
  swa.evaluate(session, [&] { seen = p.value[1].item<double>(); });
  EXPECT_EQ(p.value[1].item<double>(), updates * updates);
  return seen;
}

TEST(Swa, IsTheEqualAverageOfTheLastPart) {
  EXPECT_NEAR(average_of_squares({.start = 0.75}, 20), (256 + 289 + 324 + 361 + 400) / 5.0, 1e-12);               // 16 .. 20
  EXPECT_NEAR(average_of_squares({.start = 0.5, .every = 4}, 20), (144 + 256 + 400) / 3.0, 1e-12);                // 12, 16, 20
  EXPECT_NEAR(average_of_squares({.start = 0, .every = 1}, 20), 21 * 41 / 6.0, 1e-12);                            // Polyak: all of them
  EXPECT_EQ(average_of_squares({.start = 1}, 20), 400);                                                           // off: the weights themselves
}

TEST(Swa, IncrementalMeanIsTheBatchMean) {
  std::vector<Tensor> iterates;
  const std::vector<Tensor> average{at::zeros({3, 5}, at::kDouble)};
  for (int n = 1; n <= 100; ++n) {
    iterates.push_back(at::zeros({3, 5}, at::kDouble));
    fill_normal(iterates.back(), static_cast<uint64_t>(n), 1);
    mean_update(average, {iterates.back()}, n);
    EXPECT_LE((average[0] - at::stack(iterates).mean(0)).abs().max().item<double>(), 1e-14) << n;
  }
}

// w <- w - eta (w + noise): iterates keep a variance eta / (2 - eta) around the minimum; the mean of n of them has about 1 / (n eta^2) times eta^2: it
// falls as 1 / n, to the variance of the noise over n.
TEST(Swa, VarianceOnANoisyQuadraticFallsAsOneOverN) {
  constexpr int kRuns = 4000;
  constexpr double kEta = 0.5;
  Tensor w = at::zeros({kRuns}, at::kDouble), noise = at::zeros({kRuns}, at::kDouble);
  const std::vector<Tensor> average{at::zeros({kRuns}, at::kDouble)};
  std::map<int, double> variance;
  for (int n = 1; n <= 400; ++n) {
    fill_normal(noise, static_cast<uint64_t>(n), 1);
    w = w - kEta * (w + noise);
    mean_update(average, {w}, n);
    variance[n] = average[0].square().mean().item<double>();
  }
  EXPECT_NEAR(w.square().mean().item<double>(), kEta / (2 - kEta), 0.03);
  for (const int n : {50, 100, 200, 400}) EXPECT_NEAR(variance[n] * n, 1, 0.15) << n;
}

}  // namespace
}  // namespace huajin
