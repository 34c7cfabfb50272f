#include "huajin/core/keyed.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/core/keyed_kernels.h"

namespace huajin {
namespace {

constexpr int64_t kElementsATask = 64 * 256;  // of parallel_for; a multiple of a group

void check_fillable(const at::Tensor& tensor, const char* what) {
  const bool known = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
  if (!known || !tensor.is_cpu() || !tensor.is_contiguous())
    throw Error(kExitInternal, std::string(what) + ": the tensor must be float32 or float64, contiguous, on the CPU");
}

template <class Kernel32, class Kernel64>
void fill_by_groups(at::Tensor& tensor, Kernel32 kernel32, Kernel64 kernel64) {
  const int64_t elements = tensor.numel(), groups = (elements + kKeyedGroup - 1) / kKeyedGroup;
  const bool single = tensor.scalar_type() == at::kFloat;
  void* data = tensor.mutable_data_ptr();
  at::parallel_for(0, groups, kElementsATask / kKeyedGroup, [&](int64_t from, int64_t to) {
    const int64_t begin = from * kKeyedGroup, end = std::min(elements, to * kKeyedGroup);
    if (single) kernel32(begin, end, static_cast<float*>(data) + begin);
    else kernel64(begin, end, static_cast<double*>(data) + begin);
  });
  tensor.unsafeGetTensorImpl()->bump_version();
}

// Rows of `a` [count, n], count <= n, in place. Each vector takes the components of the earlier ones out of all later ones.
void gram_schmidt(std::vector<double>& a, int64_t count, int64_t n) {
  for (int64_t k = 0; k < count; ++k) {
    double* x = a.data() + k * n;
    const double scale = 1 / std::sqrt(fixed_dot(x, x, n));
    for (int64_t i = 0; i < n; ++i) x[i] *= scale;
    at::parallel_for(k + 1, count, std::max<int64_t>(1, kElementsATask / n), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) remove_component(x, a.data() + j * n, n);
    });
  }
}

template <class Bits>
void mask_rows(const uint64_t row_keys[], int64_t rows, int64_t elements, uint64_t threshold, Bits kept, void* out) {
  at::parallel_for(0, rows, std::max<int64_t>(1, kElementsATask / std::max<int64_t>(elements, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) keyed_mask<Bits>(row_keys[i], elements, threshold, kept, static_cast<Bits*>(out) + i * elements);
  });
}

}  // namespace

void fill_normal(at::Tensor& tensor, uint64_t key, double deviation) {
  check_fillable(tensor, "fill_normal");
  fill_by_groups(
      tensor, [&](int64_t begin, int64_t end, float* out) { keyed_normal(key, begin, end, deviation, out); },
      [&](int64_t begin, int64_t end, double* out) { keyed_normal(key, begin, end, deviation, out); });
}

void fill_uniform(at::Tensor& tensor, uint64_t key, double bound) {
  check_fillable(tensor, "fill_uniform");
  fill_by_groups(
      tensor, [&](int64_t begin, int64_t end, float* out) { keyed_uniform(key, begin, end, bound, out); },
      [&](int64_t begin, int64_t end, double* out) { keyed_uniform(key, begin, end, bound, out); });
}

void fill_orthogonal(at::Tensor& tensor, uint64_t key, double gain) {
  check_fillable(tensor, "fill_orthogonal");
  if (tensor.dim() < 2 || tensor.numel() == 0) throw Error(kExitInternal, "fill_orthogonal: the tensor must have two dimensions or more and elements");
  const int64_t m = tensor.size(0), n = tensor.numel() / m, count = std::min(m, n), width = std::max(m, n);
  std::vector<double> a(static_cast<size_t>(m * n));
  at::parallel_for(0, (m * n + kKeyedGroup - 1) / kKeyedGroup, kElementsATask / kKeyedGroup, [&](int64_t from, int64_t to) {
    keyed_normal(key, from * kKeyedGroup, std::min(m * n, to * kKeyedGroup), 1.0, a.data() + from * kKeyedGroup);
  });
  gram_schmidt(a, count, width);
  const auto write = [&](auto* out) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = static_cast<std::remove_pointer_t<decltype(out)>>(gain * (m <= n ? a[i * n + j] : a[j * m + i]));
  };
  if (tensor.scalar_type() == at::kFloat) write(tensor.mutable_data_ptr<float>());
  else write(tensor.mutable_data_ptr<double>());
  tensor.unsafeGetTensorImpl()->bump_version();
}

at::Tensor keep_mask(const uint64_t row_keys[], int64_t rows, int64_t elements_per_row, double keep, at::ScalarType dtype) {
  if (!(keep > 0 && keep <= 1)) throw Error(kExitInternal, "keep_mask: keep=" + std::to_string(keep) + " must be in (0, 1]");
  const auto threshold = static_cast<uint64_t>(std::llround(keep * 0x1.0p32));
  at::Tensor mask = at::empty({rows, elements_per_row}, at::TensorOptions(dtype));
  void* out = mask.mutable_data_ptr();
  const double scale = 1 / keep;
  switch (dtype) {
    case at::kFloat: mask_rows(row_keys, rows, elements_per_row, threshold, std::bit_cast<uint32_t>(static_cast<float>(scale)), out); break;
    case at::kDouble: mask_rows(row_keys, rows, elements_per_row, threshold, std::bit_cast<uint64_t>(scale), out); break;
    case at::kBFloat16: mask_rows(row_keys, rows, elements_per_row, threshold, c10::BFloat16(static_cast<float>(scale)).x, out); break;
    case at::kHalf: mask_rows(row_keys, rows, elements_per_row, threshold, c10::Half(static_cast<float>(scale)).x, out); break;
    default: throw Error(kExitInternal, std::string("keep_mask: no masks of type ") + c10::toString(dtype));
  }
  return mask;
}

}  // namespace huajin
