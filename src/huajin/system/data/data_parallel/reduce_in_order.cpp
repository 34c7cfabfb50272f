#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>

#include "huajin/system/data/data_parallel/transport.h"

namespace huajin {
namespace {

constexpr int64_t kLine = 64;    // bytes
constexpr int64_t kBlock = 1024;  // elements summed at a time: stays in the first-level cache

template <class T>
struct Widened {
  using type = T;
};
template <>
struct Widened<c10::BFloat16> {
  using type = float;
};
template <>
struct Widened<c10::Half> {
  using type = float;
};

template <class T, class Combine>
void reduce_blocks(const void* const sources[], int count, int64_t n, void* to, void* copy, Combine combine) {
  using Wide = typename Widened<T>::type;
  Wide sum[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t size = std::min(kBlock, n - at);
    const T* first = static_cast<const T*>(sources[0]) + at;
    for (int64_t i = 0; i < size; ++i) sum[i] = static_cast<Wide>(first[i]);
    for (int s = 1; s < count; ++s) {
      const T* next = static_cast<const T*>(sources[s]) + at;
      for (int64_t i = 0; i < size; ++i) sum[i] = combine(sum[i], static_cast<Wide>(next[i]));
    }
    T* result = static_cast<T*>(to) + at;
    for (int64_t i = 0; i < size; ++i) result[i] = static_cast<T>(sum[i]);
    if (copy == nullptr) continue;
    T* second = static_cast<T*>(copy) + at;
    for (int64_t i = 0; i < size; ++i) second[i] = static_cast<T>(sum[i]);
  }
}

constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kMost = [](double a, double b) { return b > a || std::isnan(b) ? b : a; };

}  // namespace

int64_t bytes_of(Wire wire) {
  switch (wire) {
    case Wire::kFloat: return 4;
    case Wire::kBFloat16:
    case Wire::kHalf: return 2;
    default: return 8;
  }
}

const char* name_of(Wire wire) {
  switch (wire) {
    case Wire::kFloat: return "float32";
    case Wire::kDouble: return "float64";
    case Wire::kBFloat16: return "bfloat16";
    case Wire::kHalf: return "float16";
    case Wire::kInt64: return "int64";
    default: return "greatest float64";
  }
}

void reduce_in_order(Wire wire, const void* const sources[], int count, int64_t n, void* to, void* copy) {
  switch (wire) {
    case Wire::kFloat: return reduce_blocks<float>(sources, count, n, to, copy, kAdd);
    case Wire::kDouble: return reduce_blocks<double>(sources, count, n, to, copy, kAdd);
    case Wire::kBFloat16: return reduce_blocks<c10::BFloat16>(sources, count, n, to, copy, kAdd);
    case Wire::kHalf: return reduce_blocks<c10::Half>(sources, count, n, to, copy, kAdd);
    case Wire::kInt64: return reduce_blocks<int64_t>(sources, count, n, to, copy, kAdd);
    case Wire::kMaximum: return reduce_blocks<double>(sources, count, n, to, copy, kMost);
  }
}

int64_t share_begin(int64_t n, int rank, int ranks) {
  if (rank == ranks) return n;
  return n * rank / ranks / kLine * kLine;  // in elements, so for every type a multiple of a line
}

}  // namespace huajin
