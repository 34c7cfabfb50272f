#include "huajin/optim/objective/z_loss/z_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "huajin/core/block_execution.h"
#include "huajin/core/keyed.h"
#include "huajin/core/logits.h"

namespace huajin {
namespace {

Loss z_loss_of(const Tensor& logits, double coefficient) {
  Outputs out;
  out.logits = dense_logits(logits * 1.0);
  Examples in;
  in.targets = at::arange(logits.size(0), at::kLong);
  const auto plain = [](const Outputs& o, const Examples& e) { return base_loss(o, e); };
  return ZLoss({coefficient}).loss(out, in, plain);
}
double z_loss_total(const Tensor& logits, double coefficient) {
  double total = 0;
  for (const Term& term : z_loss_of(logits, coefficient).terms) total += term.scale * term.items.sum().item().toDouble();
  return total;
}

TEST(ZLoss, IsTheSquaredLogarithmOfTheSumOfExponentials) {
  const Tensor logits = at::zeros({2, 4}, at::kDouble) + std::log(3.0);
  const Loss loss = z_loss_of(logits, 0.5);
  ASSERT_EQ(loss.terms.size(), 2u);
  EXPECT_DOUBLE_EQ(loss.terms[1].scale, 0.5);
  EXPECT_NEAR(loss.terms[1].items[0].item().toDouble(), std::log(12.0) * std::log(12.0), 1e-12);
  EXPECT_NEAR(loss.terms[0].items[0].item().toDouble(), std::log(4.0), 1e-12);  // the data term stays plain
}

// In both types: float32 logits take the fused cross-entropy, which overwrites them unless somebody looked.
TEST(ZLoss, GradientAgreesWithFiniteDifferences) {
  Tensor values = at::empty({3, 5}, at::kDouble);
  fill_normal(values, 4, 2);
  for (const auto dtype : {at::kDouble, at::kFloat}) {
    const Tensor leaf = values.to(dtype).clone().requires_grad_(true);
    Tensor total;
    for (const Term& term : z_loss_of(leaf, 0.1).terms) total = total.defined() ? total + term.scale * term.items.sum() : term.scale * term.items.sum();
    torch::autograd::backward({total});
    for (int64_t i = 0; i < 15; ++i) {
      Tensor up = values.clone(), down = values.clone();
      up.view({-1})[i] += 1e-5, down.view({-1})[i] -= 1e-5;
      const double wanted = (z_loss_total(up, 0.1) - z_loss_total(down, 0.1)) / 2e-5;
      EXPECT_NEAR(leaf.grad().view({-1})[i].item().toDouble(), wanted, dtype == at::kDouble ? 1e-8 : 2e-5);
    }
  }
}

TEST(ZLoss, IsAbsentAtZero) { EXPECT_EQ(z_loss_of(at::zeros({2, 4}, at::kDouble), 0).terms.size(), 1u); }

}  // namespace
}  // namespace huajin
