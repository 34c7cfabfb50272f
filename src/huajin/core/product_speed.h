// How fast this machine multiplies matrices in a given precision: what precision, model size and budget are chosen by.
#pragma once
#include <ATen/core/Tensor.h>

namespace huajin {

// Floating-point operations a second of a product of two square matrices with at::get_num_threads() threads, the fastest of those made in `seconds`.
// The matrices grow from 128 x 128 to `most` while a product takes less than a tenth of the time, so that a precision without hardware support (bf16
// on AVX2 runs at 0.7 GF/s) costs milliseconds, not seconds. 0 where the device has no product in this precision.
double product_flops(at::ScalarType type, at::Device device, double seconds = 0.03, int64_t most = 1024);

}  // namespace huajin
