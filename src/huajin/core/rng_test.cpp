#include "huajin/core/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

// Golden numbers: tests/golden/philox.py.
TEST(Philox, EqualsTheReference) {
  struct Known {
    uint64_t key, counter;
    std::array<uint32_t, 4> words;
  };
  const Known known[] = {
      {0x0000000000000000ULL, 0x0000000000000000ULL, {0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}},
      {0x0000000000000001ULL, 0x0000000000000000ULL, {0xe3e80670U, 0xe50a0ebcU, 0x95f222c0U, 0xb615aa27U}},
      {0x0000000000000000ULL, 0x0000000000000001ULL, {0xf8e4cca4U, 0x5cb200dbU, 0xb1a574ebU, 0x097eff67U}},
      {0x0123456789abcdefULL, 0xfedcba9876543210ULL, {0x2c03a599U, 0xd8a290fcU, 0x4339955bU, 0x8784c033U}},
      {0xffffffffffffffffULL, 0xffffffffffffffffULL, {0x4d18d7d2U, 0x430ac65aU, 0xbd2fa22aU, 0x0afae10dU}},
  };
  for (auto& k : known) EXPECT_EQ(philox(k.key, k.counter), k.words);
}

TEST(Philox, UniformAndBelowStayInRange) {
  double sum = 0;
  std::vector<int> seen(7);
  for (uint64_t i = 0; i < 70000; ++i) {
    const double u = uniform(3, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    ++seen.at(below(4, i, 7));
  }
  EXPECT_NEAR(sum / 70000, 0.5, 5 / std::sqrt(12.0 * 70000));
  for (int count : seen) EXPECT_NEAR(count, 10000, 5 * 93);
}

TEST(Permuted, IsABijection) {
  std::vector<uint64_t> sizes{1, 2, 3, 5, 31, 32, 33, 34, 1000, 12345};
  for (uint64_t power = 64; power <= 65536; power *= 2) sizes.insert(sizes.end(), {power - 1, power, power + 1});
  for (uint64_t n : sizes)
    for (uint64_t key : {uint64_t{0}, uint64_t{1}, mix(7, 8)}) {
      std::vector<bool> hit(n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t j = permuted(key, i, n);
        ASSERT_LT(j, n);
        ASSERT_FALSE(hit[j]) << "n " << n << " key " << key << ": " << j << " comes twice";
        hit[j] = true;
      }
    }
}

TEST(Permuted, LargeRangesStayInside) {
  const uint64_t n = (uint64_t{1} << 40) + 3;
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t j = permuted(5, n - 1 - i, n);
    ASSERT_LT(j, n);
    seen.insert(j);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Permuted, RefusesAnElementOutside) {
  EXPECT_THROW(permuted(1, 5, 5), Error);
  EXPECT_THROW(permuted(1, 0, 0), Error);
}

// Over many keys each element lands on each position equally often: chi-square of n x n counts, and of the pair (image of 0, image of 1).
TEST(Permuted, IsUniformOverKeys) {
  for (uint64_t n : {3, 6, 32, 33, 40, 65}) {
    const double keys = 400.0 * static_cast<double>(n);
    std::vector<double> at(n * n), pair(n * n);
    for (uint64_t key = 0; key < static_cast<uint64_t>(keys); ++key) {
      for (uint64_t i = 0; i < n; ++i) at[i * n + permuted(mix(9, key), i, n)] += 1;
      pair[permuted(mix(9, key), 0, n) * n + permuted(mix(9, key), 1, n)] += 1;
    }
    double chi = 0, chi_pair = 0;
    const double expected = keys / static_cast<double>(n), expected_pair = keys / static_cast<double>(n * (n - 1));
    for (double count : at) chi += (count - expected) * (count - expected) / expected;
    for (uint64_t k = 0; k < n * n; ++k)
      if (k / n != k % n) chi_pair += (pair[k] - expected_pair) * (pair[k] - expected_pair) / expected_pair;
    const double freedom = static_cast<double>((n - 1) * (n - 1)), freedom_pair = static_cast<double>(n * (n - 1) - 1);
    EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom) + 10) << "n " << n;
    EXPECT_LT(chi_pair, freedom_pair + 5 * std::sqrt(2 * freedom_pair) + 10) << "n " << n;
    EXPECT_GT(chi_pair, freedom_pair - 5 * std::sqrt(2 * freedom_pair) - 10) << "n " << n;
  }
}

// Neighbours don't stay neighbours: the lag-one correlation of a shuffled range is near zero.
TEST(Permuted, BreaksUpNeighbours) {
  const uint64_t n = 10000;
  double sum = 0;
  for (uint64_t i = 0; i + 1 < n; ++i)
    sum += (static_cast<double>(permuted(11, i, n)) - 4999.5) * (static_cast<double>(permuted(11, i + 1, n)) - 4999.5);
  EXPECT_NEAR(sum / (n * (1e8 / 12)), 0, 5 / std::sqrt(1e4));
}

}  // namespace
}  // namespace huajin
