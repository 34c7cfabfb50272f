#include "huajin/optim/learning_rate/schedule_free/schedule_free.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "huajin/core/keyed.h"

namespace huajin {
namespace {

TEST(ScheduleFree, EqualsTheFormulaInFloat64) { expect_golden_optimizer("schedule_free", at::kDouble, 1e-12); }
TEST(ScheduleFree, EqualsTheFormulaInFloat32) { expect_golden_optimizer("schedule_free", at::kFloat, 1e-5); }

// What is evaluated is the mean of all z so far, weighted by the squared rates; with a constant rate and beta2 = 0 (where the rate has no correction) the plain mean. And the
// weights come back.
TEST(ScheduleFree, EvaluatesTheMeanOfZ) {
  BareSession session;
  Tensor start = at::empty({7}, at::kDouble);
  fill_normal(start, 3, 1);
  Parameter& p = session.add("w", start);
  ScheduleFree technique({.learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0});
  technique.setup(session);
  Tensor sum = at::zeros_like(start);
  for (int t = 0; t < 9; ++t) {
    p.grad = p.value * 3 + t;
    Step step = session.step(session.at(t, 0));
    session.optimizer->begin(step, 1);
    session.optimizer->step(session.parameters());
    technique.after_step(step);
    sum += session.slot("schedule_free.z", p);
    const Tensor y = p.value.clone(), mean = sum / (t + 1);
    bool seen = false;
    technique.evaluate(session, [&] {
      EXPECT_LT((p.value - mean).abs().max().item<double>(), 1e-12) << t;
      seen = true;
    });
    EXPECT_TRUE(seen);
    EXPECT_TRUE(p.value.equal(y));
    EXPECT_LT((y - 0.2 * session.slot("schedule_free.z", p) - 0.8 * mean).abs().max().item<double>(), 1e-12);
  }
}

TEST(ScheduleFree, CountsAStepOnceAndARateOfZeroAsNothing) {
  ScheduleFreeTotals totals;
  EXPECT_EQ(totals.share(1, 0), 0);
  EXPECT_EQ(totals.share(2, 0.5), 1);
  EXPECT_EQ(totals.share(2, 0.5), 1);
  EXPECT_EQ(totals.share(3, 0.5), 0.5);
  EXPECT_EQ(totals.share(4, 1), 1 / 1.5);
}

}  // namespace
}  // namespace huajin
