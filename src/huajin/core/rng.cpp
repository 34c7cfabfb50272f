#include "huajin/core/rng.h"

#include <bit>
#include <string>
#include <utility>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

// Below this a shuffle in an array is exactly uniform and as fast; a Feistel network on so few values reaches too few permutations.
constexpr uint64_t kShuffled = 32;

uint64_t shuffled(uint64_t key, uint64_t i, uint64_t n) {
  uint8_t order[kShuffled];
  for (uint64_t k = 0; k < n; ++k) order[k] = static_cast<uint8_t>(k);
  for (uint64_t k = n - 1; k > 0; --k) std::swap(order[k], order[below(key, k, k + 1)]);
  return order[i];
}

}  // namespace

uint64_t permuted(uint64_t key, uint64_t i, uint64_t n) {
  if (i >= n) throw Error(kExitInternal, "permuted: element " + std::to_string(i) + " of a permutation of " + std::to_string(n));
  if (n <= kShuffled) return shuffled(key, i, n);
  constexpr uint64_t kRounds = 8;
  const int half = (std::bit_width(n - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = i >> half, right = i & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (mix(key + round, right) & mask);
      left = right;
      right = next;
    }
    i = (left << half) | right;
  } while (i >= n);
  return i;
}

}  // namespace huajin
