// Products of matrices with a large weight, float32 on the CPU. With few rows (256 to 1,024) every number of the weight is used a few hundred times only, so what a product
// costs beside its multiplications is the copy into the layout that the inner loop wants. This one fetches the next piece of the weight while it works on the present one.
// Sums run over the inner dimension in one fixed order: the same bits for any number of threads, and for a row whatever rows stand beside it.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace huajin {
using at::Tensor;

// A matrix whose element (i, j) lies at data[i * row + j * column]; one of the two strides is 1.
struct Strided {
  const float* data;
  int64_t row, column;
};

// C [m, n] = A [m, k] B [k, n] + bias [n] (null: none). C: rows of `stride` numbers, written whole, read by nobody meanwhile. All cores.
void multiply(Strided a, Strided b, const float* bias, float* c, int64_t stride, int64_t m, int64_t n, int64_t k);

// Whether multiply() is the faster choice for `rows` rows times w: measured against MKL on processors with AVX2 and without AVX-512 (bench/records/2026-12-01_gpt2_step).
bool multiply_pays(int64_t rows, const Tensor& w);

// x [..., in] -> [..., out] through w [out, in] or, transposed, [in, out] (Hugging Face's Conv1D), plus bias [out] where defined. Differentiates once; gradients come in the
// weight's own layout.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool transposed);

}  // namespace huajin
