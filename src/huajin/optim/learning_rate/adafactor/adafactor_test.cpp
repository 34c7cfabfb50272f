#include "huajin/optim/learning_rate/adafactor/adafactor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"

namespace huajin {
namespace {

TEST(Adafactor, EqualsTheFormulaInFloat64) { expect_golden_optimizer("adafactor", at::kDouble, 1e-12); }
TEST(Adafactor, EqualsTheFormulaInFloat32) { expect_golden_optimizer("adafactor", at::kFloat, 1e-6); }

struct CountingArchive : Archive {
  int64_t elements = 0;
  void number(std::string_view, double&) override {}
  void tensor(std::string_view, Tensor& value) override { elements += value.defined() ? value.numel() : 0; }
  void rank_tensor(std::string_view, Tensor& value) override { elements += value.numel(); }
};

TEST(Adafactor, KeepsRowsAndColumnsOnly) {
  BareSession session;
  Parameter& matrix = session.add("matrix", at::ones({30, 50}, at::kFloat));
  Parameter& kernel = session.add("kernel", at::ones({8, 3, 3, 3}, at::kFloat));
  Parameter& bias = session.add("bias", at::ones({7}, at::kFloat));
  for (Parameter* p : session.parameters()) p->grad = at::ones_like(p->value);
  Adafactor technique({});
  technique.setup(session);
  take_steps(session, 2);
  CountingArchive archive;
  technique.serialize(archive);
  EXPECT_EQ(archive.elements, 30 + 50 + 8 + 27);
  int slots = 0;
  for (const Parameter* p : {&matrix, &kernel, &bias}) session.each_slot(*p, [&](SlotKind, Tensor& slot) { slots += slot.numel() == 7 ? 1 : 100; });
  EXPECT_EQ(slots, 1);
}

// The factors of a matrix of rank one give it back: the first step is the gradient's sign.
TEST(Adafactor, IsExactForSquaresOfRankOne) {
  const Tensor a = at::tensor({1e-6, 2.0, -300.0}, at::kDouble), b = at::tensor({1.0, -1e4, 0.5, 7.0}, at::kDouble);
  SecondMomentFactors factors;
  const Tensor g = a.unsqueeze(1) * b.unsqueeze(0);
  EXPECT_LT((factored_direction(g, factors, 0, 1e-60) - g.sign()).abs().max().item<double>(), 1e-12);
}

TEST(Adafactor, BoundsTheRootMeanSquareOfAStep) {
  BareSession session;
  Parameter& p = session.add("w", at::full({6, 5}, 0.25, at::kDouble));
  Adafactor({.learning_rate = 0.1, .clip = 0.5}).setup(session);
  p.grad = at::full({6, 5}, 1e-3, at::kDouble);
  take_steps(session, 3);
  const double before = p.value[0][0].item<double>();
  p.grad = at::full({6, 5}, 1e3, at::kDouble);  // a burst that the second moment has not seen
  take_steps(session, 1, 3);
  EXPECT_NEAR(before - p.value[0][0].item<double>(), 0.1 * 0.5 * before, 1e-12);  // relative to the weights' root mean square
}

TEST(Adafactor, WeightsLeaveZero) {
  BareSession session;
  Parameter& p = session.add("w", at::zeros({2, 2}, at::kFloat));
  p.grad = at::ones({2, 2}, at::kFloat);
  Adafactor({.learning_rate = 0.5, .least_scale = 0.01}).setup(session);
  take_steps(session, 1);
  EXPECT_NEAR(p.value[1][1].item<float>(), -0.005, 1e-8);
}

}  // namespace
}  // namespace huajin
