// Products of large weights against float64, for every layout, odd sizes and numbers of threads.
#include "huajin/zoo/product.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace huajin {
namespace {

Tensor product_of(const Tensor& a, const Tensor& b, const Tensor& bias = {}) {
  Tensor c = at::full({a.size(0), b.size(1)}, std::numeric_limits<float>::quiet_NaN(), a.options());
  multiply({a.const_data_ptr<float>(), a.stride(0), a.stride(1)}, {b.const_data_ptr<float>(), b.stride(0), b.stride(1)},
           bias.defined() ? bias.const_data_ptr<float>() : nullptr, c.mutable_data_ptr<float>(), b.size(1), a.size(0), b.size(1), a.size(1));
  return c;
}
// As float sums of k products go: the error grows with the root of k.
double error_of(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias) {
  Tensor right = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  if (bias.defined()) right = right + bias.to(at::kDouble);
  return (c.to(at::kDouble) - right).abs().max().item<double>() / std::sqrt(static_cast<double>(a.size(1)));
}

TEST(Product, EqualsFloat64ForEveryLayoutAndOddSizes) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{1, 1, 1}, {5, 17, 9}, {6, 16, 8}, {64, 200, 256}, {259, 193, 257}, {301, 511, 1030}, {13, 1000, 3}, {700, 33, 520}}) {
    for (int layout = 0; layout < 4; ++layout) {
      const Tensor a = (layout & 1) != 0 ? at::randn({s.k, s.m}).t() : at::randn({s.m, s.k});
      const Tensor b = (layout & 2) != 0 ? at::randn({s.n, s.k}).t() : at::randn({s.k, s.n});
      for (const Tensor& bias : {Tensor(), at::randn({s.n})})
        EXPECT_LT(error_of(product_of(a, b, bias), a, b, bias), 1e-5) << s.m << " x " << s.n << " x " << s.k << " layout " << layout;
    }
  }
}

TEST(Product, SameBitsForAnyThreadsAndNeighbours) {
  const Tensor a = at::randn({516, 300}), b = at::randn({400, 300}).t();
  const Tensor whole = product_of(a, b);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  EXPECT_TRUE(at::equal(product_of(a, b), whole));
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(product_of(a.slice(0, 100, 333), b), whole.slice(0, 100, 333)));
}

TEST(Product, LinearAndItsGradientsEqualFloat64) {
  for (const bool transposed : {false, true}) {
    for (const bool with_bias : {false, true}) {
      const int64_t in = 640, out = 700;
      Tensor x = at::randn({3, 40, in}).requires_grad_(true), w = at::randn(transposed ? at::IntArrayRef{in, out} : at::IntArrayRef{out, in}).requires_grad_(true);
      Tensor bias = with_bias ? at::randn({out}).requires_grad_(true) : Tensor();
      const Tensor weights = at::randn({3, 40, out});
      (linear(x, w, bias, transposed) * weights).sum().backward();
      Tensor x2 = x.detach().to(at::kDouble).requires_grad_(true), w2 = w.detach().to(at::kDouble).requires_grad_(true);
      Tensor bias2 = with_bias ? bias.detach().to(at::kDouble).requires_grad_(true) : Tensor();
      const Tensor w2_out_in = transposed ? w2.t() : w2;
      (at::linear(x2, w2_out_in, with_bias ? std::optional<Tensor>(bias2) : std::nullopt) * weights).sum().backward();
      const auto close = [&](const Tensor& ours, const Tensor& right) {
        EXPECT_EQ(ours.sizes(), right.sizes());
        EXPECT_LT((ours.to(at::kDouble) - right).abs().max().item<double>(), 1e-5 * right.abs().max().item<double>());
      };
      close(x.grad(), x2.grad());
      close(w.grad(), w2.grad());
      EXPECT_EQ(w.grad().strides(), w.strides());
      if (with_bias) close(bias.grad(), bias2.grad());
    }
  }
}

}  // namespace
}  // namespace huajin
