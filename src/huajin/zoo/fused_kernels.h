// Row kernels of zoo/fused.h for one thread, compiled for each instruction set and chosen at run time (Highway). Formulas are in fused.h; `g` is the
// gradient of the result. Rows are contiguous.
#pragma once
#include <cstdint>

namespace huajin::fused {

template <class T>
struct Kernels {
  void (*rms)(const T* x, const T* w, T epsilon, int64_t rows, int64_t width, T* y);
  void (*rms_backward)(const T* g, const T* x, const T* w, T epsilon, int64_t rows, int64_t width, T* gx, T* gw);  // gw is added to
  void (*relu_squared)(const T* x, int64_t n, T* y);
  void (*relu_squared_backward)(const T* g, const T* x, int64_t n, T* gx);
  void (*gelu_tanh)(const T* x, int64_t n, T* y);
  void (*gelu_tanh_backward)(const T* g, const T* x, int64_t n, T* gx);
  void (*gated_silu)(const T* gate, const T* up, int64_t n, T* y);
  void (*gated_silu_backward)(const T* g, const T* gate, const T* up, int64_t n, T* g_gate, T* g_up);
  // One token: its heads [heads, K] with the angles [K/2]. w, gw: null without the norm; gw is added to.
  void (*rotate)(const T* x, const T* w, T epsilon, const T* cos, const T* sin, int64_t heads, int64_t size, T* y);
  void (*rotate_backward)(const T* g, const T* x, const T* w, T epsilon, const T* cos, const T* sin, int64_t heads, int64_t size, T* gx, T* gw);
};

const Kernels<float>& kernels(const float*);
const Kernels<double>& kernels(const double*);

}  // namespace huajin::fused
