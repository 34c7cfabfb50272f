// Kernels of keyed.h, for the processor at run time (Highway). Numbers come in groups of 64: element e takes word (e / 16) % 4 of
// philox(key, (e / 64) 16 + (e % 2) 8 + (e % 16) / 2), which is the same for every vector width up to 512 bits.
#pragma once
#include <cstdint>

namespace huajin {

constexpr int64_t kKeyedGroup = 64;

// Elements [begin, end) of the stream, times scale; begin is a multiple of 64. out[0] is element `begin`.
template <class T>
void keyed_normal(uint64_t key, int64_t begin, int64_t end, double scale, T* out);
template <class T>
void keyed_uniform(uint64_t key, int64_t begin, int64_t end, double scale, T* out);

// out[e] = raw bits `kept` where the element's 32-bit number is below `threshold` (2^32: always), else 0. Bits is uint16_t, uint32_t or uint64_t.
template <class Bits>
void keyed_mask(uint64_t key, int64_t elements, uint64_t threshold, Bits kept, Bits* out);

// y -= (x . y) x, and x . y; sums in a fixed order.
void remove_component(const double* x, double* y, int64_t n);
double fixed_dot(const double* x, const double* y, int64_t n);

}  // namespace huajin
