#include "huajin/optim/averaging/soup/soup.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "huajin/core/keyed.h"

namespace huajin {
namespace {

NamedTensors soup_member(uint64_t seed) {
  NamedTensors member{{"w", at::zeros({3, 4})}, {"steps", at::full({1}, static_cast<double>(seed), at::kLong)}};
  fill_normal(member[0].second, seed, 1);
  return member;
}

TEST(Soup, UniformIsTheMean) {
  const std::vector<NamedTensors> members{soup_member(1), soup_member(2), soup_member(3)};
  const NamedTensors all = uniform_soup(members, {0, 1, 2}), two = uniform_soup(members, {2, 0}), one = uniform_soup(members, {1});
  for (int64_t i = 0; i < 12; ++i) {
    const auto at = [&](const NamedTensors& m) { return static_cast<double>(m[0].second.view({-1})[i].item<float>()); };
    EXPECT_EQ(at(all), static_cast<float>((at(members[0]) + at(members[1]) + at(members[2])) / 3));
    EXPECT_EQ(at(two), static_cast<float>((at(members[0]) + at(members[2])) / 2));
  }
  EXPECT_TRUE(one[0].second.equal(members[1][0].second));
  EXPECT_EQ(all[0].first, "w");
  EXPECT_EQ(all[1].second.item<int64_t>(), 1);
}

// Members are numbers, the loss of a soup is the square of their mean: what is chosen can be followed by hand.
TEST(Soup, GreedyKeepsWhoeverDoesNotHurt) {
  const std::vector<double> members{3, -0.5, 1, -4, 0.75};
  std::vector<double> losses;
  for (double m : members) losses.push_back(m * m);
  int evaluations = 0;
  const GreedySoup soup = greedy_soup(losses, [&](const std::vector<size_t>& chosen) {
    ++evaluations;
    double mean = 0;
    for (size_t i : chosen) mean += members[i] / static_cast<double>(chosen.size());
    return mean * mean;
  });
  // order -0.5, 0.75, 1, 3, -4: (-0.5 + 0.75) / 2 = 0.125 stays; + 1 gives 0.417: out; + 3 gives 1.08: out; - 4 gives -1.25: out
  EXPECT_EQ(soup.chosen, (std::vector<size_t>{1, 4}));
  EXPECT_NEAR(soup.loss, 0.125 * 0.125, 1e-15);
  EXPECT_EQ(evaluations, 4);
}

TEST(Soup, GreedyIsNeverWorseThanTheBestMember) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<double> losses;
    for (uint64_t i = 0; i < 6; ++i) losses.push_back(2 + std::sin(static_cast<double>(seed * 7 + i * 13)));
    losses[seed % 6] = std::nan("");
    const GreedySoup soup = greedy_soup(losses, [&](const std::vector<size_t>& chosen) {
      double sum = 0;
      for (size_t i : chosen) sum += std::isnan(losses[i]) ? std::nan("") : losses[i];
      return sum / static_cast<double>(chosen.size()) - 0.4 * std::cos(static_cast<double>(seed + chosen.size()));  // may help, may hurt
    });
    double best = 1e9;
    for (double loss : losses)
      if (loss < best) best = loss;
    EXPECT_LE(soup.loss, best);
    EXPECT_TRUE(std::isfinite(soup.loss));
    EXPECT_EQ(losses[soup.chosen[0]], best);
  }
}

}  // namespace
}  // namespace huajin
