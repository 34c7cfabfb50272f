#include "huajin/zoo/product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "huajin/zoo/product_kernel.h"

namespace huajin {
namespace {
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kPartRows = 258;          // of A: with 256 numbers of each, half of a second cache of 512 KiB
constexpr int64_t kPartColumns = 96;        // few, so that cores end together
constexpr int64_t kWidePartColumns = 384;   // where each part packs its rows of A itself
constexpr int64_t kMostPacked = 4'000'000;  // numbers of A that are packed whole beforehand: 16 MB
constexpr int64_t kLargeWeight = 400'000;               // numbers: below, MKL is as fast (weights stay in the caches)
constexpr int64_t kFewestRows = 64;

// One for each thread, kept.
class Room {
 public:
  explicit Room(int64_t numbers) : data_(new (std::align_val_t{64}) float[static_cast<size_t>(numbers)]) {}
  float* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<float[], Free> data_;
};

int64_t part_of(int64_t whole, int64_t most, int64_t unit) {  // equal parts of at most `most`, multiples of `unit`
  const int64_t parts = std::max<int64_t>(1, (whole + most - 1) / most);
  return ((whole + parts - 1) / parts + unit - 1) / unit * unit;
}

Strided strided(const Tensor& t) { return {t.const_data_ptr<float>(), t.stride(0), t.stride(1)}; }

// a b (+ bias), of contiguous matrices or their transposes.
Tensor multiplied(const Tensor& a, const Tensor& b, const Tensor& bias) {
  Tensor c = at::empty({a.size(0), b.size(1)}, a.options().requires_grad(false));
  multiply(strided(a), strided(b), bias.defined() ? bias.const_data_ptr<float>() : nullptr, c.mutable_data_ptr<float>(), c.size(1), c.size(0), c.size(1), a.size(1));
  return c;
}

struct Product : torch::autograd::Function<Product> {  // y = x w (+ bias), x [m, in], w [in, out] or, not transposed, [out, in]
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w, const Tensor& bias, bool is_transposed) {
    ctx->save_for_backward({x, w});
    ctx->saved_data["transposed"] = is_transposed;
    ctx->saved_data["bias"] = bias.numel() > 0;
    return multiplied(x, is_transposed ? w : w.t(), bias.numel() > 0 ? bias : Tensor());
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &w = saved[1], g = grads[0].contiguous();
    const bool is_transposed = ctx->saved_data["transposed"].toBool();
    Tensor gx, gw, gb;
    if (ctx->needs_input_grad(0)) gx = multiplied(g, is_transposed ? w.t() : w, Tensor());
    if (ctx->needs_input_grad(1)) gw = is_transposed ? multiplied(x.t(), g, Tensor()) : multiplied(g.t(), x, Tensor());
    if (ctx->saved_data["bias"].toBool()) gb = g.sum(0);
    return {gx, gw, gb, Tensor()};
  }
};

}  // namespace

void multiply(Strided a, Strided b, const float* bias, float* c, int64_t stride, int64_t m, int64_t n, int64_t k) {
  const ProductKernel& kernel = product_kernel();
  const Factors factors{a, b, bias, c, stride, m, n, k};
  const int64_t threads = at::get_num_threads(), groups = (m + kernel.rows - 1) / kernel.rows;
  const std::unique_ptr<Room> packed = m * k <= kMostPacked ? std::make_unique<Room>(m * k) : nullptr;
  if (packed)
    at::parallel_for(0, groups, (groups + threads - 1) / threads, [&](int64_t first, int64_t last) { kernel.pack(a, m, k, first, last, packed->get()); });
  const int64_t rows = part_of(m, kPartRows, kernel.rows), columns = part_of(n, packed ? kPartColumns : kWidePartColumns, kernel.columns);
  const int64_t down = (m + rows - 1) / rows, across = (n + columns - 1) / columns;
  std::atomic<int64_t> next{0};
  // A core that another program holds up takes fewer parts.
  at::parallel_for(0, std::min<int64_t>(threads, down * across), 1, [&](int64_t, int64_t) {
    static thread_local const Room a_room(kernel.depth * (kPartRows + kernel.rows)), b_room(kernel.depth * kernel.columns);
    for (int64_t part; (part = next++) < down * across;) {
      const int64_t row = part / across * rows, column = part % across * columns;
      kernel.part(factors, {row, std::min(rows, m - row), column, std::min(columns, n - column)}, packed ? packed->get() : nullptr, a_room.get(), b_room.get());
    }
  });
}

bool multiply_pays(int64_t rows, const Tensor& w) {
  static const bool measured = product_kernel_is_measured();
  return measured && w.is_cpu() && w.scalar_type() == at::kFloat && w.is_contiguous() && w.numel() >= kLargeWeight && rows >= kFewestRows;
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool is_transposed) {
  const int64_t in = w.size(is_transposed ? 0 : 1), out = w.size(is_transposed ? 1 : 0);
  const bool ours = multiply_pays(x.numel() / in, w) && x.scalar_type() == at::kFloat;
  if (!ours && !is_transposed) return bias.defined() ? at::linear(x, w, bias) : at::linear(x, w);
  auto shape = x.sizes().vec();
  shape.back() = out;
  const Tensor rows = x.reshape({-1, in});
  // An autograd function takes no undefined tensor: none is an empty one.
  if (ours) return Product::apply(rows.contiguous(), w, bias.defined() ? bias : at::empty({0}, x.options().requires_grad(false)), is_transposed).view(shape);
  // As one product of matrices: its backward makes the gradient in w's own layout. Through linear(x, w^T) it comes transposed, and autograd copies it into shape.
  return (bias.defined() ? at::addmm(bias, rows, w) : at::mm(rows, w)).view(shape);
}

}  // namespace huajin
