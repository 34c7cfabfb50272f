// Kernels of the fused softmax cross-entropy, float32, chosen at run time for the processor (Highway).
#pragma once
#include <cstdint>

namespace huajin {

// lse[i] = log sum_v exp(x[i, v]), numerically safe; rows x classes, contiguous. Threaded over rows.
void log_sum_exp_rows(const float* x, int64_t rows, int64_t classes, float* lse);
// In place: x[i, v] <- grad[i] (exp(x[i, v] - lse[i]) - [v == target[i]]).
void softmax_gradient_rows(float* x, const float* lse, const int64_t* targets, const float* grad, int64_t rows, int64_t classes);

}  // namespace huajin
