#include "huajin/core/keyed_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "huajin/core/keyed_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Compiled with -ffp-contract=off (CMakeLists.txt): a fused multiply-add where the processor has one would change bits.
// Loops over plain arrays become vectors of whatever width the target has.
HWY_BEFORE_NAMESPACE();
namespace huajin::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kLanes = 16;

// Product of the low halves of the 64-bit lanes and m.
template <class V>
inline V WideMultiply(V v, uint32_t m) {
#if HWY_TARGET == HWY_SCALAR
  return V((hn::GetLane(v) & 0xFFFFFFFFULL) * m);
#else
  const hn::DFromV<V> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  return hn::MulEven(hn::BitCast(d32, v), hn::Set(d32, m));
#endif
}

// words[w * 16 + lane] = word w of philox(key, counter + (lane % 2) 8 + lane / 2). One counter in each 64-bit lane, since the widening multiply
// reads the low halves; two sets of 8 run together and end up in the low and high half.
void PhiloxGroup(uint64_t key, uint64_t counter, uint32_t* HWY_RESTRICT words) {
  const hn::CappedTag<uint64_t, kLanes / 2> d;
  const auto low = hn::Set(d, 0xFFFFFFFFULL);
  const auto round = [&](auto& c0, auto& c1, auto& c2, auto& c3, auto k0, auto k1) {
    const auto p0 = WideMultiply(c0, 0xD2511F53U), p1 = WideMultiply(c2, 0xCD9E8D57U);
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), k0);  // high halves hold rubbish that nobody reads
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), k1);
    c1 = p1;
    c3 = p0;
  };
  const auto pack = [&](auto a, auto b, uint32_t* to) { hn::Store(hn::Or(hn::And(a, low), hn::ShiftLeft<32>(b)), d, reinterpret_cast<uint64_t*>(to)); };
  for (size_t j = 0; j < kLanes / 2; j += hn::Lanes(d)) {
    const uint64_t first = (counter & 0xFFFFFFFFULL) + j;  // counter is a multiple of 16: no carry out of 32 bits
    auto a0 = hn::Iota(d, first), a1 = hn::Set(d, counter >> 32), a2 = hn::Zero(d), a3 = a2;
    auto b0 = hn::Iota(d, first + kLanes / 2), b1 = a1, b2 = a2, b3 = a2;
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int r = 0; r < 10; ++r) {
      const auto v0 = hn::Set(d, uint64_t{k0}), v1 = hn::Set(d, uint64_t{k1});
      round(a0, a1, a2, a3, v0, v1);
      round(b0, b1, b2, b3, v0, v1);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    pack(a0, b0, words + 2 * j);
    pack(a1, b1, words + kLanes + 2 * j);
    pack(a2, b2, words + 2 * kLanes + 2 * j);
    pack(a3, b3, words + 3 * kLanes + 2 * j);
  }
}

inline double FromBits(uint64_t bits) { return std::bit_cast<double>(bits); }
// r + 1/2, exact: 2^52 + r as bits, minus 2^52.
inline double HalfOpen(uint64_t r) { return FromBits(0x4330000000000000ULL | r) - 0x1.0p52 + 0.5; }

// Natural logarithm of a normal number in (0, 1): exponent and 2 atanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt 2). Relative error 2e-16.
inline double LogUnit(double u) {
  const uint64_t bits = std::bit_cast<uint64_t>(u);
  const uint64_t shifted = bits - 0x3FE6A09E667F3BCDULL;                 // relative to sqrt(1/2); negative below
  const uint64_t exponent = (shifted + (uint64_t{1024} << 52)) >> 52;    // + 1024: stays positive
  const double e = FromBits(0x4330000000000000ULL | exponent) - (0x1.0p52 + 1024.0);
  const double m = FromBits(bits - (exponent << 52) + (uint64_t{1024} << 52));
  const double s = (m - 1) / (m + 1), q = s * s;
  double p = 1.0 / 21;
  p = p * q + 1.0 / 19;
  p = p * q + 1.0 / 17;
  p = p * q + 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  return e * 0.693147180559945309417 + 2 * (s + s * q * p);
}

// Box and Muller (1958), on the circle by quadrants: angle = quadrant pi/2 + pi/4 + x, |x| < pi/4.
inline void NormalPair(uint32_t r, uint32_t angle, double* z0, double* z1) {
  const double radius = std::sqrt(-2 * LogUnit(HalfOpen(r) * 0x1.0p-32));
  const double x = (HalfOpen(angle & 0x3FFFFFFFU) * 0x1.0p-30 - 0.5) * 1.57079632679489661923, q = x * x;
  double s = -1.0 / 1307674368000.0;
  s = s * q + 1.0 / 6227020800.0;
  s = s * q - 1.0 / 39916800.0;
  s = s * q + 1.0 / 362880.0;
  s = s * q - 1.0 / 5040.0;
  s = s * q + 1.0 / 120.0;
  s = s * q - 1.0 / 6.0;
  s = x + x * q * s;
  double c = 1.0 / 20922789888000.0;
  c = c * q - 1.0 / 87178291200.0;
  c = c * q + 1.0 / 479001600.0;
  c = c * q - 1.0 / 3628800.0;
  c = c * q + 1.0 / 40320.0;
  c = c * q - 1.0 / 720.0;
  c = c * q + 1.0 / 24.0;
  c = c * q - 0.5;
  c = c * q + 1;
  const uint64_t swap = uint64_t{0} - ((angle >> 30) & 1), sign = uint64_t{angle >> 31} << 63;  // quadrant's two bits
  const uint64_t bs = std::bit_cast<uint64_t>(s), bc = std::bit_cast<uint64_t>(c);
  const uint64_t first = (bc & ~swap) | ((bs ^ (uint64_t{1} << 63)) & swap), second = (bs & ~swap) | (bc & swap);
  *z0 = radius * FromBits(first ^ sign);
  *z1 = radius * FromBits(second ^ sign);
}

void NormalGroup(const uint32_t* HWY_RESTRICT words, double* HWY_RESTRICT z) {
  for (int half = 0; half < 2; ++half) {
    const uint32_t* r = words + 2 * half * kLanes;
    double* to = z + 2 * half * kLanes;
    for (int i = 0; i < kLanes; ++i) NormalPair(r[i], r[i + kLanes], &to[i], &to[i + kLanes]);
  }
}

void UniformGroup(const uint32_t* HWY_RESTRICT words, double* HWY_RESTRICT z) {
  for (int i = 0; i < 4 * kLanes; ++i) z[i] = HalfOpen(words[i]) * 0x1.0p-31 - 1;
}

template <class T, class Group>
void Fill(uint64_t key, int64_t begin, int64_t end, double scale, T* out, Group group) {
  alignas(64) uint32_t words[4 * kLanes];
  alignas(64) double z[4 * kLanes];
  for (int64_t at = begin; at < end; at += 4 * kLanes) {
    PhiloxGroup(key, static_cast<uint64_t>(at / 4), words);
    group(words, z);
    T* to = out + (at - begin);
    const int64_t count = std::min<int64_t>(4 * kLanes, end - at);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(z[i] * scale);
  }
}

void NormalFloat(uint64_t key, int64_t begin, int64_t end, double scale, float* out) { Fill(key, begin, end, scale, out, NormalGroup); }
void NormalDouble(uint64_t key, int64_t begin, int64_t end, double scale, double* out) { Fill(key, begin, end, scale, out, NormalGroup); }
void UniformFloat(uint64_t key, int64_t begin, int64_t end, double scale, float* out) { Fill(key, begin, end, scale, out, UniformGroup); }
void UniformDouble(uint64_t key, int64_t begin, int64_t end, double scale, double* out) { Fill(key, begin, end, scale, out, UniformGroup); }

template <class Bits>
void Mask(uint64_t key, int64_t elements, uint64_t threshold, Bits kept, Bits* out) {
  alignas(64) uint32_t words[4 * kLanes];
  const bool all = threshold > 0xFFFFFFFFULL;
  const auto below = static_cast<uint32_t>(threshold);
  int64_t at = 0;
  for (; at + 4 * kLanes <= elements; at += 4 * kLanes) {
    PhiloxGroup(key, static_cast<uint64_t>(at / 4), words);
    Bits* to = out + at;
    for (int i = 0; i < 4 * kLanes; ++i) to[i] = (words[i] < below) | all ? kept : Bits{0};
  }
  if (at == elements) return;
  PhiloxGroup(key, static_cast<uint64_t>(at / 4), words);
  for (int i = 0; at < elements; ++i, ++at) out[at] = (words[i] < below) | all ? kept : Bits{0};
}
void Mask16(uint64_t key, int64_t n, uint64_t threshold, uint16_t kept, uint16_t* out) { Mask(key, n, threshold, kept, out); }
void Mask32(uint64_t key, int64_t n, uint64_t threshold, uint32_t kept, uint32_t* out) { Mask(key, n, threshold, kept, out); }
void Mask64(uint64_t key, int64_t n, uint64_t threshold, uint64_t kept, uint64_t* out) { Mask(key, n, threshold, kept, out); }

double Dot(const double* x, const double* y, int64_t n) {
  double sum[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) sum[k] += x[i + k] * y[i + k];
  for (int k = 0; i < n; ++i, ++k) sum[k] += x[i] * y[i];
  double total = 0;
  for (double s : sum) total += s;
  return total;
}
void Remove(const double* HWY_RESTRICT x, double* HWY_RESTRICT y, int64_t n) {
  const double factor = Dot(x, y, n);
  for (int64_t i = 0; i < n; ++i) y[i] -= factor * x[i];
}

}  // namespace huajin::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace huajin {
HWY_EXPORT(NormalFloat);
HWY_EXPORT(NormalDouble);
HWY_EXPORT(UniformFloat);
HWY_EXPORT(UniformDouble);
HWY_EXPORT(Mask16);
HWY_EXPORT(Mask32);
HWY_EXPORT(Mask64);
HWY_EXPORT(Dot);
HWY_EXPORT(Remove);

template <>
void keyed_normal(uint64_t key, int64_t begin, int64_t end, double scale, float* out) { HWY_DYNAMIC_DISPATCH(NormalFloat)(key, begin, end, scale, out); }
template <>
void keyed_normal(uint64_t key, int64_t begin, int64_t end, double scale, double* out) { HWY_DYNAMIC_DISPATCH(NormalDouble)(key, begin, end, scale, out); }
template <>
void keyed_uniform(uint64_t key, int64_t begin, int64_t end, double scale, float* out) { HWY_DYNAMIC_DISPATCH(UniformFloat)(key, begin, end, scale, out); }
template <>
void keyed_uniform(uint64_t key, int64_t begin, int64_t end, double scale, double* out) { HWY_DYNAMIC_DISPATCH(UniformDouble)(key, begin, end, scale, out); }
template <>
void keyed_mask(uint64_t key, int64_t n, uint64_t threshold, uint16_t kept, uint16_t* out) { HWY_DYNAMIC_DISPATCH(Mask16)(key, n, threshold, kept, out); }
template <>
void keyed_mask(uint64_t key, int64_t n, uint64_t threshold, uint32_t kept, uint32_t* out) { HWY_DYNAMIC_DISPATCH(Mask32)(key, n, threshold, kept, out); }
template <>
void keyed_mask(uint64_t key, int64_t n, uint64_t threshold, uint64_t kept, uint64_t* out) { HWY_DYNAMIC_DISPATCH(Mask64)(key, n, threshold, kept, out); }
double fixed_dot(const double* x, const double* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(Dot)(x, y, n); }
void remove_component(const double* x, double* y, int64_t n) { HWY_DYNAMIC_DISPATCH(Remove)(x, y, n); }

}  // namespace huajin
#endif
