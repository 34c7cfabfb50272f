#include "huajin/optim/objective/sam/sam.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <limits>

#include "conformance/bare_session.h"
#include "huajin/core/keyed.h"

namespace huajin {
namespace {

// F(w) = w^T H w / 2: the gradient that reaches the optimizer is H (w + rho H w / |H w|).
TEST(Sam, EqualsTheClosedFormOnAQuadratic) {
  Tensor a = at::empty({5, 5}, at::kDouble);
  fill_normal(a, 3, 1);
  const Tensor h = a.matmul(a.t());
  BareSession session;
  Parameter& p = session.add("w", at::arange(5, at::kDouble) - 1.5);
  const Tensor w = p.value.clone();
  std::vector<Pass> passes;
  const auto engine = [&](Pass pass) {
    passes.push_back(pass);
    p.grad = h.matmul(p.value);
    return true;
  };
  Step step = session.step();
  Sam sam({.rho = 0.3});
  EXPECT_TRUE(sam.gradients(step, {}, engine));
  const Tensor g = h.matmul(w);
  EXPECT_LT((p.grad - h.matmul(w + 0.3 * g / g.norm())).abs().max().item<double>(), 1e-12);
  EXPECT_TRUE(p.value.equal(w));
  ASSERT_EQ(passes.size(), 2u);
  EXPECT_TRUE(passes[0].probe);
  EXPECT_FALSE(passes[1].probe);
}

TEST(Sam, StaysAProbeInsideAnotherProbe) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  Step step = session.step();
  int probes = 0;
  Sam sam({});
  sam.gradients(step, {.probe = true}, [&](Pass pass) {
    probes += pass.probe;
    p.grad = p.value.clone();
    return true;
  });
  EXPECT_EQ(probes, 2);
}

TEST(Sam, GivesTheWeightsBackWhenAPassIsNotFinite) {
  for (const int bad : {1, 2}) {
    BareSession session;
    Parameter& p = session.add("w", at::arange(3, at::kFloat) / 7);
    const Tensor w = p.value.clone();
    Step step = session.step();
    int pass_number = 0;
    Sam sam({.rho = 1});
    EXPECT_FALSE(sam.gradients(step, {}, [&](Pass) {
      p.grad = p.value * (++pass_number == bad ? std::numeric_limits<double>::quiet_NaN() : 1.0);
      return pass_number != bad;
    }));
    EXPECT_EQ(pass_number, bad);
    EXPECT_TRUE(p.value.equal(w));
  }
}

TEST(Sam, TakesTheSecondPassOnlyEveryFewSteps) {
  BareSession session;
  Parameter& p = session.add("w", at::ones({2}, at::kDouble));
  int passes = 0;
  Sam sam({.every = 3});
  for (int i = 0; i < 6; ++i) {
    Step step = session.step(session.at(i, 0));
    sam.gradients(step, {}, [&](Pass) {
      ++passes;
      p.grad = p.value.clone();
      return true;
    });
  }
  EXPECT_EQ(passes, 8);
}

}  // namespace
}  // namespace huajin
