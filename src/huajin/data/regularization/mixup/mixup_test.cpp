#include "huajin/data/regularization/mixup/mixup.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/one_hot.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "huajin/core/block_execution.h"
#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"
#include "huajin/core/logits.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

TEST(Mixup, SharesHaveTheMomentsOfBeta) {  // mean 1/2, variance 1 / (4 (2 alpha + 1))
  constexpr int kDraws = 40000;
  for (const double alpha : {0.1, 0.4, 1.0, 5.0}) {
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double m = beta_variate(alpha, mix(99, static_cast<uint64_t>(i)));
      ASSERT_GE(m, 0);
      ASSERT_LE(m, 1);
      sum += m;
      squares += (m - 0.5) * (m - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 5 * variance * std::sqrt(2.0 / kDraws)) << alpha;
  }
}

TEST(Mixup, IsUniformForAlphaOne) {  // Beta(1, 1); Kolmogorov-Smirnov
  constexpr int kDraws = 5000;
  std::vector<double> draws(kDraws);
  for (int i = 0; i < kDraws; ++i) draws[i] = beta_variate(1, mix(7, static_cast<uint64_t>(i)));
  std::sort(draws.begin(), draws.end());
  double distance = 0;
  for (int i = 0; i < kDraws; ++i) distance = std::max(distance, std::abs(draws[i] - (i + 0.5) / kDraws));
  EXPECT_LT(distance, 1.95 / std::sqrt(kDraws));  // p = 0.001
}

Step mixed(BareSession& session, int64_t draw, double alpha) {
  session.batch.id = at::arange(10, at::kLong) * 3;
  Step step = session.step(session.at(draw, 0));
  Mixup({.alpha = alpha}).on_batch(step);
  return step;
}

TEST(Mixup, PartnersAreAPermutationThatChangesWithTheDraw) {
  BareSession session;
  const Batch a = mixed(session, 4, 0.3).batch, again = mixed(session, 4, 0.3).batch, b = mixed(session, 5, 0.3).batch;
  EXPECT_TRUE(std::get<0>(a.partner.sort()).equal(a.id));
  EXPECT_TRUE(a.partner.equal(again.partner) && a.input_mix.equal(again.input_mix));
  EXPECT_FALSE(a.partner.equal(b.partner) && a.input_mix.equal(b.input_mix));
  EXPECT_TRUE(a.input_mix.is_same(a.target_mix));
}

TEST(Mixup, OffLeavesTheIndexAlone) {
  BareSession session;
  EXPECT_FALSE(mixed(session, 4, 0).batch.partner.defined());
}

// Mixing the losses of two targets is the loss of the mixed target.
TEST(Mixup, MixedLossIsTheLossOfTheMixedTarget) {
  BareSession session;
  Tensor logits = at::empty({10, 7}, at::kDouble);
  fill_normal(logits, 5, 2);
  Examples in;
  in.index = mixed(session, 1, 0.5).batch;
  in.targets = at::arange(10, at::kLong) % 7;
  in.partner_targets = (at::arange(10, at::kLong) * 3 + 1) % 7;
  Outputs out;
  out.logits = dense_logits(logits);
  const Tensor share = in.index.target_mix.unsqueeze(1);
  const Tensor target = share * at::one_hot(in.targets, 7).to(at::kDouble) + (1 - share) * at::one_hot(in.partner_targets, 7).to(at::kDouble);
  const Tensor wanted = at::cross_entropy_loss(logits, target, {}, /*reduction=*/0);
  EXPECT_LT((base_loss(out, in).data() - wanted).abs().max().item<double>(), 1e-13);
}

TEST(Mixup, RefusesTokensAndASecondMixer) {
  BareSession session;
  Step step = mixed(session, 1, 0.5);
  EXPECT_THROW(Mixup({}).on_batch(step), UserError);
  session.images = false;
  EXPECT_THROW(Mixup({}).setup(session), UserError);
}

}  // namespace
}  // namespace huajin
