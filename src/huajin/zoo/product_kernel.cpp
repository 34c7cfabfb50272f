#include "huajin/zoo/product_kernel.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "huajin/zoo/product_kernel.cpp"
// foreach_target.h must come first.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

// The arrangement of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): A in groups of kRows rows, [k][kRows] each, sized for the second
// cache; one panel of B, [k][kColumns], in the first; a tile of C in registers.
HWY_BEFORE_NAMESPACE();
namespace huajin::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<float, 16>;
using Vector = hn::VFromD<Lanes>;
constexpr int64_t kLanes = hn::MaxLanes(Lanes());
constexpr int64_t kColumns = 2 * kLanes;
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON  // 32 registers
constexpr int64_t kRows = 12;
#else
constexpr int64_t kRows = 6;
#endif
constexpr int64_t kDepth = 256;
constexpr int64_t kLine = 16;  // floats of a cache line

// A tile: R rows of packed A, a panel of packed B.
template <int R>
void Tile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t k, float* HWY_RESTRICT c, int64_t stride, int64_t columns, bool add) {
  const Lanes d;
  Vector sum[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
  for (int64_t i = 0; i < k; ++i, a += R, b += kColumns) {
    const Vector left = hn::Load(d, b), right = hn::Load(d, b + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector x = hn::Set(d, a[r]);
      sum[r][0] = hn::MulAdd(x, left, sum[r][0]);
      sum[r][1] = hn::MulAdd(x, right, sum[r][1]);
    }
  }
  if (columns == kColumns) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r, c += stride) {
      hn::StoreU(add ? hn::Add(sum[r][0], hn::LoadU(d, c)) : sum[r][0], d, c);
      hn::StoreU(add ? hn::Add(sum[r][1], hn::LoadU(d, c + kLanes)) : sum[r][1], d, c + kLanes);
    }
    return;
  }
  for (int r = 0; r < R; ++r, c += stride) {
    HWY_ALIGN float row[kColumns];
    hn::Store(sum[r][0], d, row);
    hn::Store(sum[r][1], d, row + kLanes);
    for (int64_t j = 0; j < columns; ++j) c[j] = add ? c[j] + row[j] : row[j];
  }
}

using TileKernel = void (*)(const float*, const float*, int64_t, float*, int64_t, int64_t, bool);
TileKernel TileOf(int64_t rows) {
  static constexpr TileKernel kTiles[] = {
      Tile<1>, Tile<2>, Tile<3>, Tile<4>, Tile<5>, Tile<6>,
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
      Tile<7>, Tile<8>, Tile<9>, Tile<10>, Tile<11>, Tile<12>,
#endif
  };
  return kTiles[rows - 1];
}

// Copies k rows of `width` numbers into [k][room], zeros behind them. The matrix lies along rows (column == 1) or along columns.
void PackAny(Strided s, int64_t k, int64_t width, int64_t room, float* HWY_RESTRICT to) {
  for (int64_t i = 0; i < k; ++i, to += room)
    for (int64_t j = 0; j < room; ++j) to[j] = j < width ? s.data[i * s.row + j * s.column] : 0.0F;
}
template <int64_t kWidth>
void Pack(Strided s, int64_t k, float* HWY_RESTRICT to) {
  if (s.column == 1) {
    for (int64_t i = 0; i < k; ++i, to += kWidth) std::memcpy(to, s.data + i * s.row, kWidth * sizeof(float));
    return;
  }
  // Along columns: eight numbers of each at a time, so that reads run along a column and writes stay in few lines of the cache.
  int64_t i = 0;
  for (; i + 8 <= k; i += 8, to += 8 * kWidth)
    for (int64_t j = 0; j < kWidth; ++j)
      for (int64_t e = 0; e < 8; ++e) to[e * kWidth + j] = s.data[(i + e) * s.row + j * s.column];
  PackAny({s.data + i * s.row, s.row, s.column}, k - i, kWidth, kWidth, to);
}

#if HWY_TARGET == HWY_AVX2
// to[i][room] for `width` <= 8 columns that lie along memory, eight numbers of each; writes eight in every row, in order, the rest of them zeros.
HWY_INLINE void TransposeEight(const float* from, int64_t column, int width, float* to, int64_t room) {
  __m256 r[8], u[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = i < width ? _mm256_loadu_ps(from + i * column) : _mm256_setzero_ps();
  for (int i = 0; i < 8; i += 2) {
    u[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    u[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(u[i], u[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(u[i], u[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(u[i + 1], u[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(u[i + 1], u[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps(to + i * room, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps(to + (i + 4) * room, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
}
#endif
void PackPanel(Strided b, int64_t k, int64_t width, float* HWY_RESTRICT to) {
  if (width < kColumns) return PackAny(b, k, width, kColumns, to);
#if HWY_TARGET == HWY_AVX2
  if (b.row == 1) {
    const int64_t eights = k / 8 * 8;
    for (int64_t i = 0; i < eights; i += 8)
      for (int64_t j = 0; j < kColumns; j += 8) TransposeEight(b.data + i + j * b.column, b.column, 8, to + i * kColumns + j, kColumns);
    return PackAny({b.data + eights, b.row, b.column}, k - eights, kColumns, kColumns, to + eights * kColumns);
  }
#endif
  Pack<kColumns>(b, k, to);
}
void PackGroup(Strided a, int64_t k, int64_t rows, float* HWY_RESTRICT to) {
  const Strided across{a.data, a.column, a.row};
  if (rows < kRows) return PackAny(across, k, rows, rows, to);
#if HWY_TARGET == HWY_AVX2
  if (a.column == 1 && k > 8) {  // the two zeros behind the last row of each eight are written over by the next
    const int64_t eights = (k - 1) / 8 * 8;
    for (int64_t i = 0; i < eights; i += 8) TransposeEight(a.data + i, a.row, kRows, to + i * kRows, kRows);
    return PackAny({a.data + eights, across.row, across.column}, k - eights, kRows, kRows, to + eights * kRows);
  }
#endif
  Pack<kRows>(across, k, to);
}

// Asks for the lines of the next panel, a few at a time, into the second cache.
class Ahead {
 public:
  Ahead(Strided b, int64_t k, int64_t width, int64_t calls)
      : b_(b), per_column_((k + kLine - 1) / kLine), lines_(b.row == 1 ? width * per_column_ : k), each_((lines_ + calls - 1) / calls) {}
  void fetch() {
    for (const int64_t end = std::min(lines_, at_ + each_); at_ < end; ++at_)
      __builtin_prefetch(b_.row == 1 ? b_.data + at_ / per_column_ * b_.column + at_ % per_column_ * kLine : b_.data + at_ * b_.row, 0, 2);
  }

 private:
  Strided b_;
  int64_t per_column_, lines_, each_, at_ = 0;
};

int64_t PieceOf(int64_t k) {  // equal pieces of at most kDepth
  const int64_t pieces = std::max<int64_t>(1, (k + kDepth - 1) / kDepth);
  return (k + pieces - 1) / pieces;
}

void PackGroups(Strided a, int64_t m, int64_t k, int64_t first, int64_t last, float* to) {
  const int64_t piece = PieceOf(k);
  for (int64_t at = 0; at < k; at += piece) {
    const int64_t now = std::min(piece, k - at);
    for (int64_t i = first * kRows; i < std::min(m, last * kRows); i += kRows)
      PackGroup({a.data + i * a.row + at * a.column, a.row, a.column}, now, std::min(kRows, m - i), to + at * m + i * now);
  }
}

// One panel of B against all rows of the part: `a` packed, `next` the panel whose lines are wanted next (width 0: none).
void MultiplyPanel(const float* a, const float* b, int64_t k, float* c, int64_t stride, int64_t rows, int64_t width, bool add, Ahead next) {
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t count = std::min(kRows, rows - i);
    float* tile = c + i * stride;
    next.fetch();
    for (int64_t r = 0; r < count; ++r) __builtin_prefetch(tile + r * stride, 1, 3);
    TileOf(count)(a + i * k, b, k, tile, stride, width, add);
  }
}

void MakePart(const Factors& f, const ProductKernel::Part& p, const float* packed, float* a_room, float* b_room) {
  float* c = f.c + p.row * f.stride + p.column;
  for (int64_t i = 0; i < p.count && f.bias != nullptr; ++i) std::memcpy(c + i * f.stride, f.bias + p.column, static_cast<size_t>(p.width) * sizeof(float));
  const int64_t piece = PieceOf(f.k), groups = (p.count + kRows - 1) / kRows;
  for (int64_t at = 0; at < f.k; at += piece) {
    const int64_t now = std::min(piece, f.k - at);
    const float* a = packed + at * f.m + p.row * now;
    if (packed == nullptr) {
      PackGroups({f.a.data + p.row * f.a.row + at * f.a.column, f.a.row, f.a.column}, p.count, now, 0, groups, a_room);
      a = a_room;
    }
    for (int64_t j = 0; j < p.width; j += kColumns) {
      const Strided panel{f.b.data + at * f.b.row + (p.column + j) * f.b.column, f.b.row, f.b.column};
      const int64_t width = std::min(kColumns, p.width - j), next = std::min(kColumns, f.n - p.column - j - width);  // beyond the part: the next one begins there
      PackPanel(panel, now, width, b_room);
      MultiplyPanel(a, b_room, now, c + j, f.stride, p.count, width, at > 0 || f.bias != nullptr,
                    Ahead({panel.data + kColumns * f.b.column, f.b.row, f.b.column}, next > 0 ? now : 0, next, groups));
    }
  }
}

const ProductKernel* Kernel() {
  static constexpr ProductKernel kKernel{kRows, kColumns, kDepth, PackGroups, MakePart};
  return &kKernel;
}

}  // namespace huajin::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace huajin {
HWY_EXPORT(Kernel);
const ProductKernel& product_kernel() {
  static const ProductKernel& chosen = *HWY_DYNAMIC_DISPATCH(Kernel)();
  return chosen;
}
bool product_kernel_is_measured() { return (hwy::SupportedTargets() & HWY_AVX2) != 0 && (hwy::SupportedTargets() & HWY_AVX3) == 0; }
}  // namespace huajin
#endif
