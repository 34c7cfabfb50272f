#include "huajin/core/softmax.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "huajin/core/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace huajin::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

float RowLse(const float* x, int64_t classes) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  float top = x[0];
  int64_t v = 0;
  if (classes >= lanes) {
    auto best = hn::LoadU(d, x);
    for (; v + lanes <= classes; v += lanes) best = hn::Max(best, hn::LoadU(d, x + v));
    top = hn::GetLane(hn::MaxOfLanes(d, best));
  }
  for (; v < classes; ++v) top = std::max(top, x[v]);
  if (!std::isfinite(top)) return top == -INFINITY ? -INFINITY : NAN;
  const auto shift = hn::Set(d, top);
  auto sum = hn::Zero(d);
  for (v = 0; v + lanes <= classes; v += lanes) sum = hn::Add(sum, hn::Exp(d, hn::Sub(hn::LoadU(d, x + v), shift)));
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; v < classes; ++v) total += std::exp(x[v] - top);
  return top + std::log(total);
}

void RowGradient(float* x, float lse, int64_t target, float grad, int64_t classes) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, lse), factor = hn::Set(d, grad);
  int64_t v = 0;
  for (; v + lanes <= classes; v += lanes) hn::StoreU(hn::Mul(factor, hn::Exp(d, hn::Sub(hn::LoadU(d, x + v), shift))), d, x + v);
  for (; v < classes; ++v) x[v] = grad * std::exp(x[v] - lse);
  if (target >= 0 && target < classes) x[target] -= grad;
}

}  // namespace huajin::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace huajin {
HWY_EXPORT(RowLse);
HWY_EXPORT(RowGradient);

void log_sum_exp_rows(const float* x, int64_t rows, int64_t classes, float* lse) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(RowLse);
  at::parallel_for(0, rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(classes, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) lse[i] = kernel(x + i * classes, classes);
  });
}

void softmax_gradient_rows(float* x, const float* lse, const int64_t* targets, const float* grad, int64_t rows, int64_t classes) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(RowGradient);
  at::parallel_for(0, rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(classes, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kernel(x + i * classes, lse[i], targets[i], grad[i], classes);
  });
}

}  // namespace huajin
#endif
