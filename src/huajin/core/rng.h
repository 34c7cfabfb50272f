// Counter-based random numbers (Philox 4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a pure function of a key
// and a position, so nothing needs to be rewound, and any thread, rank or micro-batch gets the same number for the same element.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace huajin {

// Mixes words to a 64-bit key (SplitMix64 finaliser, chained).
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9e3779b97f4a7c15ULL + (b ^ (b >> 32)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
template <class... Rest>
constexpr uint64_t mix(uint64_t a, uint64_t b, uint64_t c, Rest... rest) {
  return mix(mix(a, b), c, rest...);
}
constexpr uint64_t hash_name(std::string_view name) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

constexpr std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

// In [0, 1), 53 bits.
constexpr double uniform(uint64_t key, uint64_t counter) {
  const auto r = philox(key, counter);
  return static_cast<double>((uint64_t{r[0]} << 21) ^ (r[1] >> 11)) * 0x1.0p-53;
}
// In [0, n), unbiased to 2^-64.
constexpr uint64_t below(uint64_t key, uint64_t counter, uint64_t n) {
  const auto r = philox(key, counter);
  return static_cast<uint64_t>((static_cast<unsigned __int128>((uint64_t{r[0]} << 32) | r[1]) * n) >> 64);
}

// Purposes: the first word of every key after the seed, so that streams never meet.
enum class Purpose : uint64_t { kInit = 1, kOrder = 2, kDropout = 3, kAugment = 4, kMix = 5, kSample = 6, kGenerate = 7, kTechnique = 8 };

// The i-th element of a random permutation of [0, n) without storing it: a Feistel network on the next even power of two, walked until it
// falls inside. Pure; O(1) expected.
uint64_t permuted(uint64_t key, uint64_t i, uint64_t n);

}  // namespace huajin
