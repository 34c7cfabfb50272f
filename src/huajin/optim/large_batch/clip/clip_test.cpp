#include "huajin/optim/large_batch/clip/clip.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "conformance/bare_session.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

struct Gradients {
  BareSession session;
  Gradients() {
    session.add("a", at::ones({2, 3}, at::kDouble)).grad = at::arange(6, at::kDouble).reshape({2, 3}) - 2.5;
    session.add("b", at::ones({4}, at::kDouble)).grad = at::arange(4, at::kDouble) * 7;
    session.add("none", at::ones({4}, at::kDouble));
  }
  Tensor flat() { return at::cat({session.parameters()[0]->grad.reshape(-1), session.parameters()[1]->grad}); }
  void clip(const ClipConfig& config) {
    Step step = session.step();
    step.norm = session.norm();
    Clip(config).on_gradients(step);
  }
};

TEST(Clip, BoundsTheGlobalNormAndKeepsTheDirection) {
  Gradients g;
  const Tensor before = g.flat().clone();
  g.clip({.norm = 2});
  EXPECT_NEAR(g.flat().norm().item<double>(), 2, 1e-6);
  EXPECT_NEAR((g.flat() * before).sum().item<double>() / (g.flat().norm() * before.norm()).item<double>(), 1, 1e-12);
  EXPECT_FALSE(g.session.parameters()[2]->grad.defined());
}

TEST(Clip, LeavesASmallGradientAloneBitForBit) {
  Gradients g;
  const Tensor before = g.flat().clone();
  g.clip({.norm = 1000});
  EXPECT_TRUE(g.flat().equal(before));
}

TEST(Clip, BoundsElementsBeforeTheNorm) {
  Gradients g;
  const Tensor bounded = g.flat().clamp(-1.5, 1.5);
  g.clip({.norm = 0, .value = 1.5});
  EXPECT_TRUE(g.flat().equal(bounded));
  Gradients both;
  both.clip({.norm = 1, .value = 1.5});
  EXPECT_LT((both.flat() - bounded / (bounded.norm() + 1e-6)).abs().max().item<double>(), 1e-12);
}

TEST(Clip, RefusesToDoNothing) { EXPECT_THROW(Clip({.norm = 0, .value = 0}), UserError); }

}  // namespace
}  // namespace huajin
