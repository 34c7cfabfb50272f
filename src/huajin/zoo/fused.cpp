#include "huajin/zoo/fused.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "huajin/zoo/fused_kernels.h"

namespace huajin::fused {
namespace {
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 16384;  // elements worth a thread
constexpr int64_t kParts = 16;     // a weight's gradient is summed in so many parts, whatever the threads: same bits

bool has_kernel(const Tensor& x) { return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble); }

template <class Body>
auto with_type(const Tensor& x, Body body) {
  return x.scalar_type() == at::kDouble ? body(double{}) : body(float{});
}
template <class T>
const T* in(const Tensor& t) {
  return t.numel() > 0 ? t.const_data_ptr<T>() : nullptr;
}
template <class T>
T* out(const Tensor& t) {
  return t.mutable_data_ptr<T>();
}

// Rows cut into equal parts, each with its own row of sums: body(first row, rows, sums [width]). Returns [width].
template <class T, class Body>
Tensor summed_over_parts(const Tensor& like, int64_t rows, int64_t cost, int64_t width, Body body) {
  const int64_t parts = std::clamp<int64_t>(rows * cost / kGrain, 1, kParts);
  Tensor sums = at::zeros({parts, width}, like.options().requires_grad(false));
  T* to = out<T>(sums);
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) body(rows * p / parts, rows * (p + 1) / parts - rows * p / parts, to + p * width);
  });
  return sums.sum(0);
}
template <class Body>
void over(int64_t n, int64_t cost, Body body) {  // body(first, count)
  at::parallel_for(0, n, std::max<int64_t>(1, kGrain / std::max<int64_t>(cost, 1)), [&](int64_t begin, int64_t end) { body(begin, end - begin); });
}

struct Rms : torch::autograd::Function<Rms> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w, double epsilon) {
    ctx->save_for_backward({x, w});
    ctx->saved_data["epsilon"] = epsilon;
    const int64_t width = x.size(-1);
    Tensor y = at::empty_like(x);
    with_type(x, [&](auto zero) {
      using T = decltype(zero);
      const auto& kernel = kernels(&zero);
      over(x.numel() / width, width, [&](int64_t first, int64_t count) {
        kernel.rms(in<T>(x) + first * width, in<T>(w), static_cast<T>(epsilon), count, width, out<T>(y) + first * width);
      });
    });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &w = saved[1], g = grads[0].contiguous();
    const double epsilon = ctx->saved_data["epsilon"].toDouble();
    const int64_t width = x.size(-1);
    Tensor gx = at::empty_like(x), gw;
    with_type(x, [&](auto zero) {
      using T = decltype(zero);
      const auto& kernel = kernels(&zero);
      gw = summed_over_parts<T>(x, x.numel() / width, width, width, [&](int64_t first, int64_t count, T* sums) {
        const int64_t at = first * width;
        kernel.rms_backward(in<T>(g) + at, in<T>(x) + at, in<T>(w), static_cast<T>(epsilon), count, width, out<T>(gx) + at, sums);
      });
    });
    return {gx, gw, Tensor()};
  }
};

// A function of one element; Op names its two kernels.
template <class Op>
struct Elementwise : torch::autograd::Function<Elementwise<Op>> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    Tensor y = at::empty_like(x);
    with_type(x, [&](auto zero) {
      using T = decltype(zero);
      over(x.numel(), Op::kCost, [&](int64_t first, int64_t count) { Op::forward(kernels(&zero))(in<T>(x) + first, count, out<T>(y) + first); });
    });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor x = ctx->get_saved_variables()[0], g = grads[0].contiguous();
    Tensor gx = at::empty_like(x);
    with_type(x, [&](auto zero) {
      using T = decltype(zero);
      over(x.numel(), Op::kCost,
           [&](int64_t first, int64_t count) { Op::backward(kernels(&zero))(in<T>(g) + first, in<T>(x) + first, count, out<T>(gx) + first); });
    });
    return {gx};
  }
};

struct ReluSquared {
  static constexpr int64_t kCost = 1;
  static auto forward(const auto& kernel) { return kernel.relu_squared; }
  static auto backward(const auto& kernel) { return kernel.relu_squared_backward; }
};
struct GeluTanh {
  static constexpr int64_t kCost = 4;
  static auto forward(const auto& kernel) { return kernel.gelu_tanh; }
  static auto backward(const auto& kernel) { return kernel.gelu_tanh_backward; }
};

struct GatedSilu : torch::autograd::Function<GatedSilu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate, const Tensor& up) {
    ctx->save_for_backward({gate, up});
    Tensor y = at::empty_like(gate);
    with_type(gate, [&](auto zero) {
      using T = decltype(zero);
      over(gate.numel(), 1,
           [&](int64_t first, int64_t count) { kernels(&zero).gated_silu(in<T>(gate) + first, in<T>(up) + first, count, out<T>(y) + first); });
    });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1], g = grads[0].contiguous();
    Tensor g_gate = at::empty_like(gate), g_up = at::empty_like(up);
    with_type(gate, [&](auto zero) {
      using T = decltype(zero);
      over(gate.numel(), 1, [&](int64_t first, int64_t count) {
        kernels(&zero).gated_silu_backward(in<T>(g) + first, in<T>(gate) + first, in<T>(up) + first, count, out<T>(g_gate) + first,
                                           out<T>(g_up) + first);
      });
    });
    return {g_gate, g_up};
  }
};

struct Rotate : torch::autograd::Function<Rotate> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w, double epsilon, const Tensor& cos, const Tensor& sin) {
    ctx->save_for_backward({x, w});
    ctx->saved_data["epsilon"] = epsilon;
    ctx->saved_data["cos"] = cos;
    ctx->saved_data["sin"] = sin;
    const int64_t length = x.size(1), heads = x.size(2), size = x.size(3), token = heads * size;
    Tensor y = at::empty_like(x);
    with_type(x, [&](auto zero) {
      using T = decltype(zero);
      const auto& kernel = kernels(&zero);
      over(x.size(0) * length, token, [&](int64_t first, int64_t count) {
        for (int64_t i = first; i < first + count; ++i)
          kernel.rotate(in<T>(x) + i * token, in<T>(w), static_cast<T>(epsilon), in<T>(cos) + i % length * (size / 2),
                        in<T>(sin) + i % length * (size / 2), heads, size, out<T>(y) + i * token);
      });
    });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &w = saved[1], g = grads[0].contiguous();
    const Tensor cos = ctx->saved_data["cos"].toTensor(), sin = ctx->saved_data["sin"].toTensor();
    const double epsilon = ctx->saved_data["epsilon"].toDouble();
    const int64_t length = x.size(1), heads = x.size(2), size = x.size(3), token = heads * size;
    Tensor gx = at::empty_like(x), gw;
    with_type(x, [&](auto zero) {
      using T = decltype(zero);
      const auto& kernel = kernels(&zero);
      gw = summed_over_parts<T>(x, x.size(0) * length, token, size, [&](int64_t first, int64_t count, T* sums) {
        for (int64_t i = first; i < first + count; ++i)
          kernel.rotate_backward(in<T>(g) + i * token, in<T>(x) + i * token, in<T>(w), static_cast<T>(epsilon), in<T>(cos) + i % length * (size / 2),
                                 in<T>(sin) + i % length * (size / 2), heads, size, out<T>(gx) + i * token, sums);
      });
    });
    return {gx, w.numel() > 0 ? gw : Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& w, double epsilon) {
  if (has_kernel(x)) return Rms::apply(x.contiguous(), w, epsilon);
  return x * at::rsqrt(x.square().mean(-1, true) + epsilon) * w;
}

Tensor relu_squared(const Tensor& x) { return has_kernel(x) ? Elementwise<ReluSquared>::apply(x.contiguous()) : at::relu(x).square(); }

Tensor gelu_tanh(const Tensor& x) { return has_kernel(x) ? Elementwise<GeluTanh>::apply(x.contiguous()) : at::gelu(x, "tanh"); }

Tensor gated_silu(const Tensor& gate, const Tensor& up) {
  return has_kernel(gate) ? GatedSilu::apply(gate.contiguous(), up.contiguous()) : at::silu(gate) * up;
}

Tensor rotate(const Tensor& x, const Tensor& w, double epsilon, const Tensor& cos, const Tensor& sin) {
  // An autograd function takes no undefined tensor: none is an empty one.
  if (has_kernel(x)) return Rotate::apply(x.contiguous(), w.defined() ? w : at::empty({0}, x.options().requires_grad(false)), epsilon, cos, sin);
  const Tensor y = w.defined() ? rms_norm(x, w, epsilon) : x, c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  const int64_t half = x.size(3) / 2;
  const Tensor a = y.narrow(3, 0, half), b = y.narrow(3, half, half);
  return at::cat({a * c - b * s, b * c + a * s}, 3);
}

}  // namespace huajin::fused
