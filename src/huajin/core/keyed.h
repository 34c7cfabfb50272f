// Tensors of keyed random numbers (core/rng.h): a pure function of the key and the logical element index. Threads, vector width and processor don't
// change a bit. float64 and float32 tensors of one key hold the same numbers, rounded.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace huajin {

// float32 or float64, contiguous, on the CPU; throws Error otherwise. 31 bits of resolution in the tail: |z| <= 6.8 standard deviations.
void fill_normal(at::Tensor& tensor, uint64_t key, double deviation);
// In (-bound, bound).
void fill_uniform(at::Tensor& tensor, uint64_t key, double bound);
// [m, ...] read as a matrix [m, n]: orthonormal rows (m <= n) or columns, times gain; uniform over such matrices (Gram-Schmidt on normals, Stewart,
// "The efficient generation of random orthogonal matrices", 1980). O(m n min(m, n)) in float64.
void fill_orthogonal(at::Tensor& tensor, uint64_t key, double gain);

// Mask of dropout, scaled: [rows, elements_per_row] of 1 / keep with probability `keep`, else 0; keep in (0, 1]. Element j of row i depends on (row_keys[i], j)
// alone. float32, float64, bfloat16 or float16.
at::Tensor keep_mask(const uint64_t row_keys[], int64_t rows, int64_t elements_per_row, double keep, at::ScalarType dtype);

}  // namespace huajin
