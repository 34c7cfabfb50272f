#include "huajin/optim/learning_rate/muon/muon.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"

namespace huajin {
namespace {

TEST(Muon, EqualsTheFormulaInFloat64) { expect_golden_optimizer("muon", at::kDouble, 1e-12); }
TEST(Muon, EqualsTheFormulaInFloat32) { expect_golden_optimizer("muon", at::kFloat, 1e-6); }

Tensor gaussian(std::vector<int64_t> shape, uint64_t key, at::ScalarType dtype = at::kFloat) {
  Tensor t = at::empty(shape, dtype);
  fill_normal(t, key, 1);
  return t;
}

TEST(Muon, SingularValuesEndNearOneOnRectangularMatrices) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{64, 256}, {256, 64}, {32, 96}, {48, 70}, {16, 200}}) {
    const Tensor made = orthogonalize(gaussian({2, rows, cols}, 11 + static_cast<uint64_t>(rows)), 5).to(at::kDouble);
    ASSERT_EQ(made.sizes(), at::IntArrayRef({2, rows, cols}));
    const Tensor values = std::get<1>(at::linalg_svd(made, false));
    EXPECT_GT(values.min().item<double>(), 0.65) << rows << " x " << cols;
    EXPECT_LT(values.max().item<double>(), 1.2) << rows << " x " << cols;
  }
}

TEST(Muon, KeepsTheSingularVectors) {  // on both routes: through the matrix, and through its Gram matrix
  for (const int64_t cols : {10, 30}) {
    const Tensor x = gaussian({1, 8, cols}, 5, at::kDouble);
    const auto [u, s, v] = at::linalg_svd(x, false);
    const Tensor inside = u.mT().matmul(orthogonalize(x, 5)).matmul(v.mT());
    const Tensor off = inside - inside.diagonal(0, 1, 2).diag_embed();
    EXPECT_LT(off.abs().max().item<double>(), 1e-9) << cols;
  }
}

TEST(Muon, BothRoutesGiveTheSame) {
  const Tensor wide = gaussian({3, 6, 20}, 3, at::kDouble);  // Gram route
  const Tensor x = wide / (wide.pow(2).sum({1, 2}, true).sqrt() + 1e-7);
  Tensor plain = x;
  for (int i = 0; i < 5; ++i) {
    const Tensor gram = plain.matmul(plain.mT());
    plain = 3.4445 * plain - 4.7750 * gram.matmul(plain) + 2.0315 * gram.matmul(gram).matmul(plain);
  }
  EXPECT_LT((orthogonalize(wide, 5) - plain).abs().max().item<double>(), 1e-11);
}

TEST(Muon, DoesNotSeeTheGradientsScale) {
  const Tensor x = gaussian({1, 12, 40}, 9, at::kDouble);
  EXPECT_LT((orthogonalize(x, 5) - orthogonalize(x * 1e4, 5)).abs().max().item<double>(), 1e-6);
}

TEST(Muon, RmsScaleGivesAnUpdateOfAdamwsSize) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{64, 256}, {200, 50}}) {
    const Tensor update = orthogonalize(gaussian({1, rows, cols}, 2), 5) * muon_scale("rms", rows, cols);
    EXPECT_NEAR(update.pow(2).mean().sqrt().item<double>(), 0.2, 0.03) << rows << " x " << cols;
  }
  EXPECT_DOUBLE_EQ(muon_scale("spectral", 64, 256), 1);
  EXPECT_DOUBLE_EQ(muon_scale("spectral", 256, 64), 2);
}

TEST(Muon, ActsOnKernelsAsMatrices) {
  BareSession session;
  Parameter& p = session.add("conv", gaussian({8, 3, 3, 3}, 4, at::kDouble));
  p.hidden_matrix = true;
  p.grad = gaussian({8, 3, 3, 3}, 6, at::kDouble);
  const Tensor before = p.value.clone();
  Muon({.learning_rate = 0.5}).setup(session);
  session.optimizer->begin(session.step(), 1);
  session.optimizer->step(session.parameters());
  const Tensor moved = (p.value - before).reshape({8, 27}) / -0.5;
  const Tensor values = std::get<1>(at::linalg_svd(moved, false));
  EXPECT_GT(values.min().item<double>(), 0.6);
  EXPECT_LT(values.max().item<double>(), 1.25);
}

TEST(Muon, RefusesAModelWithoutHiddenMatrices) {
  BareSession session;
  session.add("bias", at::ones({3}));
  Muon muon({});
  EXPECT_THROW(muon.start(session), UserError);
}

}  // namespace
}  // namespace huajin
