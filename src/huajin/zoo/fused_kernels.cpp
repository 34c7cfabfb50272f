#include "huajin/zoo/fused_kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "huajin/zoo/fused_kernels.cpp"
// foreach_target.h must come first.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

// Plain loops: inside Highway's target region the compiler vectorises them for that target. Only the exponential needs Highway's.
HWY_BEFORE_NAMESPACE();
namespace huajin::fused::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
T InverseRoot(const T* x, int64_t width, T epsilon) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < width; ++j) sum += x[j] * x[j];
  return T(1) / std::sqrt(sum / static_cast<T>(width) + epsilon);
}

template <class T>
void Rms(const T* x, const T* w, T epsilon, int64_t rows, int64_t width, T* HWY_RESTRICT y) {
  for (int64_t i = 0; i < rows; ++i, x += width, y += width) {
    const T r = InverseRoot(x, width, epsilon);
    for (int64_t j = 0; j < width; ++j) y[j] = x[j] * r * w[j];
  }
}

// With r = (mean(x^2) + epsilon)^(-1/2): dL/dx = r g w - x r^3 / D sum(g w x), dL/dw = sum over rows of g x r.
template <class T>
void RmsBackward(const T* g, const T* x, const T* w, T epsilon, int64_t rows, int64_t width, T* HWY_RESTRICT gx, T* HWY_RESTRICT gw) {
  for (int64_t i = 0; i < rows; ++i, g += width, x += width, gx += width) {
    const T r = InverseRoot(x, width, epsilon);
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t j = 0; j < width; ++j) dot += g[j] * w[j] * x[j];
    const T pull = dot * r * r * r / static_cast<T>(width);
    for (int64_t j = 0; j < width; ++j) {
      gx[j] = r * g[j] * w[j] - x[j] * pull;
      gw[j] += g[j] * x[j] * r;
    }
  }
}

template <class T>
void ReluSquared(const T* x, int64_t n, T* HWY_RESTRICT y) {
  for (int64_t j = 0; j < n; ++j) {
    const T positive = x[j] > 0 ? x[j] : T(0);
    y[j] = positive * positive;
  }
}
template <class T>
void ReluSquaredBackward(const T* g, const T* x, int64_t n, T* HWY_RESTRICT gx) {
  for (int64_t j = 0; j < n; ++j) gx[j] = 2 * (x[j] > 0 ? x[j] : T(0)) * g[j];
}

template <class D, class V>
V Sigmoid(D d, V x) {
  const auto one = hn::Set(d, 1);
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x))));
}
template <class T>
void GatedSilu(const T* gate, const T* up, int64_t n, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const auto a = hn::LoadU(d, gate + j);
    hn::StoreU(hn::Mul(hn::Mul(a, Sigmoid(d, a)), hn::LoadU(d, up + j)), d, y + j);
  }
  for (; j < n; ++j) y[j] = gate[j] / (1 + std::exp(-gate[j])) * up[j];
}
// silu' = s (1 + a (1 - s)) with s = sigmoid(a).
template <class T>
void GatedSiluBackward(const T* g, const T* gate, const T* up, int64_t n, T* HWY_RESTRICT g_gate, T* HWY_RESTRICT g_up) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const auto a = hn::LoadU(d, gate + j), s = Sigmoid(d, a), upstream = hn::LoadU(d, g + j);
    const auto slope = hn::Mul(s, hn::MulAdd(a, hn::Sub(one, s), one));
    hn::StoreU(hn::Mul(upstream, hn::Mul(hn::LoadU(d, up + j), slope)), d, g_gate + j);
    hn::StoreU(hn::Mul(upstream, hn::Mul(a, s)), d, g_up + j);
  }
  for (; j < n; ++j) {
    const T s = 1 / (1 + std::exp(-gate[j]));
    g_gate[j] = g[j] * up[j] * s * (1 + gate[j] * (1 - s));
    g_up[j] = g[j] * gate[j] * s;
  }
}

// 0.5 (1 + tanh u) = sigmoid(2 u), so gelu = x s with s = sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)), and gelu' = s + x s (1 - s) 2 u'.
constexpr double kGeluSlope = 1.5957691216057308, kGeluCubic = 0.044715;
template <class T>
void GeluTanh(const T* x, int64_t n, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto slope = hn::Set(d, static_cast<T>(kGeluSlope)), cubic = hn::Set(d, static_cast<T>(kGeluSlope * kGeluCubic));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const auto a = hn::LoadU(d, x + j);
    hn::StoreU(hn::Mul(a, Sigmoid(d, hn::Mul(a, hn::MulAdd(hn::Mul(a, a), cubic, slope)))), d, y + j);
  }
  for (; j < n; ++j) y[j] = x[j] / (1 + std::exp(-x[j] * static_cast<T>(kGeluSlope) * (1 + static_cast<T>(kGeluCubic) * x[j] * x[j])));
}
template <class T>
void GeluTanhBackward(const T* g, const T* x, int64_t n, T* HWY_RESTRICT gx) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto slope = hn::Set(d, static_cast<T>(kGeluSlope)), cubic = hn::Set(d, static_cast<T>(kGeluSlope * kGeluCubic));
  const auto three = hn::Set(d, T(3)), one = hn::Set(d, T(1));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const auto a = hn::LoadU(d, x + j), c = hn::Mul(hn::Mul(a, a), cubic), s = Sigmoid(d, hn::Mul(a, hn::Add(c, slope)));
    const auto rise = hn::Mul(hn::Mul(a, hn::Sub(one, s)), hn::MulAdd(c, three, slope));
    hn::StoreU(hn::Mul(hn::LoadU(d, g + j), hn::Mul(s, hn::Add(one, rise))), d, gx + j);
  }
  for (; j < n; ++j) {
    const T c = static_cast<T>(kGeluSlope * kGeluCubic) * x[j] * x[j], s = 1 / (1 + std::exp(-x[j] * (static_cast<T>(kGeluSlope) + c)));
    gx[j] = g[j] * s * (1 + x[j] * (1 - s) * (static_cast<T>(kGeluSlope) + 3 * c));
  }
}

template <class T>
void Rotate(const T* x, const T* w, T epsilon, const T* cos, const T* sin, int64_t heads, int64_t size, T* HWY_RESTRICT y) {
  const int64_t half = size / 2;
  for (int64_t h = 0; h < heads; ++h, x += size, y += size) {
    if (w == nullptr) {
      for (int64_t j = 0; j < half; ++j) {
        const T a = x[j], b = x[j + half];
        y[j] = a * cos[j] - b * sin[j];
        y[j + half] = b * cos[j] + a * sin[j];
      }
    } else {
      const T r = InverseRoot(x, size, epsilon);
      for (int64_t j = 0; j < half; ++j) {
        const T a = x[j] * r * w[j], b = x[j + half] * r * w[j + half];
        y[j] = a * cos[j] - b * sin[j];
        y[j + half] = b * cos[j] + a * sin[j];
      }
    }
  }
}
// The rotation's transpose, then the norm's backward pass (RmsBackward) on what it gives.
template <class T>
void RotateBackward(const T* g, const T* x, const T* w, T epsilon, const T* cos, const T* sin, int64_t heads, int64_t size, T* HWY_RESTRICT gx,
                    T* HWY_RESTRICT gw) {
  const int64_t half = size / 2;
  for (int64_t h = 0; h < heads; ++h, g += size, x += size, gx += size) {
    for (int64_t j = 0; j < half; ++j) {
      const T a = g[j], b = g[j + half];
      gx[j] = a * cos[j] + b * sin[j];
      gx[j + half] = b * cos[j] - a * sin[j];
    }
    if (w == nullptr) continue;
    const T r = InverseRoot(x, size, epsilon);
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t j = 0; j < size; ++j) dot += gx[j] * w[j] * x[j];
    const T pull = dot * r * r * r / static_cast<T>(size);
    for (int64_t j = 0; j < size; ++j) {
      const T upstream = gx[j];
      gw[j] += upstream * x[j] * r;
      gx[j] = r * upstream * w[j] - x[j] * pull;
    }
  }
}

template <class T>
const Kernels<T>& Table() {
  static const Kernels<T> table{Rms<T>,       RmsBackward<T>,       ReluSquared<T>, ReluSquaredBackward<T>, GeluTanh<T>, GeluTanhBackward<T>,
                                GatedSilu<T>, GatedSiluBackward<T>, Rotate<T>,      RotateBackward<T>};
  return table;
}
const Kernels<float>* FloatKernels() { return &Table<float>(); }
const Kernels<double>* DoubleKernels() { return &Table<double>(); }

}  // namespace huajin::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace huajin::fused {
HWY_EXPORT(FloatKernels);
HWY_EXPORT(DoubleKernels);
const Kernels<float>& kernels(const float*) {
  static const Kernels<float>& chosen = *HWY_DYNAMIC_DISPATCH(FloatKernels)();
  return chosen;
}
const Kernels<double>& kernels(const double*) {
  static const Kernels<double>& chosen = *HWY_DYNAMIC_DISPATCH(DoubleKernels)();
  return chosen;
}
}  // namespace huajin::fused
#endif
