#include "huajin/zoo/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <map>
#include <mutex>
#include <tuple>

#include "huajin/zoo/fused.h"

namespace huajin {
namespace {

struct Angles {
  Tensor cos, sin;  // [positions, K/2]
};

// Shared by all layers; grow by doubling.
Angles angles(int64_t positions, int64_t size, double base, at::ScalarType type, at::Device device) {
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, double, at::ScalarType, std::string>, Angles> tables;
  std::lock_guard lock(mutex);
  Angles& table = tables[{size, base, type, device.str()}];
  if (!table.cos.defined() || table.cos.size(0) < positions) {
    int64_t rows = 64;
    while (rows < positions) rows *= 2;
    at::NoGradGuard off;
    // The same operations in the same precision as Hugging Face's, so that far positions turn by the same angle.
    const auto exact = type == at::kDouble ? at::kDouble : at::kFloat;
    const Tensor frequency = at::pow(base, at::arange(0, size, 2, at::kLong).to(exact) / static_cast<double>(size)).reciprocal();
    const Tensor angle = at::outer(at::arange(rows, at::kLong).to(exact), frequency);
    table.cos = angle.cos().to(device).contiguous();
    table.sin = angle.sin().to(device).contiguous();
  }
  return table;
}

Tensor repeat_heads(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  return x.unsqueeze(2).expand({x.size(0), x.size(1), times, x.size(2), x.size(3)}).reshape({x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

}  // namespace

Tensor split_heads(const Tensor& x, int64_t head_size) { return x.view({x.size(0), x.size(1), -1, head_size}).transpose(1, 2); }
Tensor merge_heads(const Tensor& x) { return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)}); }

Tensor rotate_heads(const Tensor& x, int64_t head_size, const Tensor& w, double epsilon, int64_t first, double base) {
  const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const int64_t length = x.size(1);
  const Angles table = angles(first + length, head_size, base, wide, x.device());
  const Tensor heads = x.view({x.size(0), length, -1, head_size}).to(wide);
  return fused::rotate(heads, w, epsilon, table.cos.narrow(0, first, length), table.sin.narrow(0, first, length)).to(x.scalar_type()).transpose(1, 2);
}

Tensor causal_attention(Forward& f, const Layer& where, const Tensor& q, const Tensor& k_new, const Tensor& v_new) {
  Tensor k = k_new, v = v_new;
  if (f.cache != nullptr) std::tie(k, v) = f.cache->append(where, k_new, v_new);
  const int64_t t = q.size(2), all = k.size(2), times = q.size(1) / k.size(1);
  k = repeat_heads(k, times);
  v = repeat_heads(v, times);
  if (t == all) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
  if (t == 1) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, false);
  const auto whole = q.options().dtype(at::kLong);
  const Tensor seen = at::arange(all, whole).unsqueeze(0) <= at::arange(all - t, all, whole).unsqueeze(1);
  return at::scaled_dot_product_attention(q, k, v, seen, 0.0, false);
}

double attention_flops(int64_t length, int64_t width) {
  return 4.0 * static_cast<double>(length) * static_cast<double>(length) * static_cast<double>(width);
}

}  // namespace huajin
