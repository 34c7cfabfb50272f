#include "huajin/optim/averaging/lookahead/lookahead.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/tiny.h"

namespace huajin {
namespace {

// w <- (1 - eta) w is descent on w^2 / 2. In k updates fast = slow (1 - eta)^k, so slow is multiplied by 1 - a + a (1 - eta)^k at each pull.
TEST(Lookahead, HasTheClosedFormOnAQuadratic) {
  constexpr double kEta = 0.1, kShare = 0.4;
  constexpr int kEvery = 5;
  BareSession session;
  Parameter& p = session.add("w", at::full({3}, 2.0, at::kDouble));
  Lookahead lookahead({.every = kEvery, .share = kShare});
  lookahead.setup(session);
  session.slot("lookahead.slow", p);
  const double pull = 1 - kShare + kShare * std::pow(1 - kEta, kEvery);
  for (int i = 0; i < 23; ++i) {
    Step step = session.step(session.at(i, 0));
    lookahead.update(step, [&] { p.value.mul_(1 - kEta); });
    const double slow = 2 * std::pow(pull, (i + 1) / kEvery);
    EXPECT_NEAR(p.value[0].item<double>(), slow * std::pow(1 - kEta, (i + 1) % kEvery), 1e-13) << i;
    lookahead.evaluate(session, [&] { EXPECT_NEAR(p.value[2].item<double>(), slow, 1e-13) << i; });
    EXPECT_NEAR(p.value[0].item<double>(), slow * std::pow(1 - kEta, (i + 1) % kEvery), 1e-13) << i;
  }
}

TEST(Lookahead, OfShareOneIsTheInnerOptimizer) {
  TinyOptions plain, wrapped;
  plain.optimizer = wrapped.optimizer = {"adamw", {{"learning_rate", 0.01}}};
  wrapped.techniques = {{"lookahead", {{"every", 2}, {"share", 1}}}};
  EXPECT_EQ(difference(train(wrapped, 0, false), train(plain, 0, false)), "");
  wrapped.techniques = {{"lookahead", {{"every", 2}, {"share", 0.5}}}};
  EXPECT_NE(difference(train(wrapped, 0, false), train(plain, 0, false)), "");
}

// However small the share is, the weights stay between where they were and where they went.
TEST(Lookahead, PullsTensorByTensor) {
  const std::vector<Tensor> slow{at::arange(4, at::kDouble)}, fast{at::arange(4, at::kDouble) * 3};
  lookahead_pull(slow, fast, 0.25);
  EXPECT_TRUE(slow[0].equal(at::arange(4, at::kDouble) * 1.5));
  EXPECT_TRUE(fast[0].equal(slow[0]));
}

}  // namespace
}  // namespace huajin
