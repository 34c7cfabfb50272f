#include "huajin/optim/objective/esam/esam.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "huajin/optim/objective/test_quadratic.h"
#include "huajin/optim/objective/sam/sam.h"

namespace huajin {
namespace {

TEST(Esam, IsSamWithAllWeightsAndRows) {
  Quadratic f, g;
  Esam esam({.rho = 0.2, .weights = 1, .data = 1});
  Sam sam({.rho = 0.2});
  EXPECT_TRUE(f.gradient_of(esam).equal(g.gradient_of(sam)));
  EXPECT_EQ(f.passes.size(), 2u);
}

// Each element stays or moves by rho g / |g| / share; over many draws the mean is SAM's.
TEST(Esam, MovesAShareOfTheWeightsAndOnAverageAsSam) {
  Quadratic f;
  const Tensor w = f.w(), g = f.h.matmul(w), whole = 0.2 * g / g.norm();
  Esam esam({.rho = 0.2, .weights = 0.6, .data = 1});
  Tensor sum = at::zeros({5}, at::kDouble), moved = at::zeros({5}, at::kDouble);
  const int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    Step step = f.session.step(f.session.at(i, 0));
    int pass = 0;
    esam.gradients(step, {}, [&](Pass p) {
      if (pass++ == 1) {
        const Tensor e = f.w() - w, share = e / whole;
        EXPECT_LT((share.abs() * (share - 1 / 0.6).abs()).max().item().toDouble(), 1e-9);
        sum += e;
        moved += share.gt(0.5).to(at::kDouble);
      }
      return f.engine(p);
    });
  }
  EXPECT_TRUE(f.w().equal(w));
  EXPECT_LT((moved / draws - 0.6).abs().max().item().toDouble(), 5 * std::sqrt(0.24 / draws));
  EXPECT_LT((sum / draws / whole - 1).abs().max().item().toDouble(), 5 * std::sqrt(0.4 / 0.6 / draws));
}

TEST(Esam, ChoosesTheRowsWhoseLossRisesMost) {
  const Tensor rise = at::tensor({0.1, 3.0, -2.0, 0.5, 9.0, 0.2}, at::kDouble);
  EXPECT_TRUE(esam_rows(rise, 1, 0.5).equal(at::tensor({1, 3, 4}, at::kLong)));
  EXPECT_TRUE(esam_rows(rise, 1, 0.01).equal(at::tensor({4}, at::kLong)));
  EXPECT_TRUE(esam_rows(rise, 2, 0.4).equal(at::tensor({0, 1, 4, 5}, at::kLong)));  // pairs sum to 3.1, -1.5, 9.2
  EXPECT_TRUE(esam_rows(rise, 1, 1).equal(at::tensor({0, 1, 2, 3, 4, 5}, at::kLong)));
}

// The second pass gets these rows alone, with their columns; afterwards the step has its batch again.
TEST(Esam, GivesTheSecondPassTheChosenRows) {
  Quadratic f;
  f.session.batch.id = at::tensor({10, 11, 12, 13}, at::kLong);
  f.session.batch.weight = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble);
  f.session.scores = [](const Batch& batch) { return batch.id.to(at::kDouble).unsqueeze(1).expand({batch.rows(), 3}); };
  Step step = f.session.step();
  step.example_loss = at::tensor({10.0, 8.0, 12.0, 1.0}, at::kDouble);  // rises: 0, 3, 0, 12
  Esam esam({.rho = 0.2, .data = 0.5});
  std::vector<Tensor> ids, weights;
  esam.gradients(step, {}, [&](Pass p) {
    ids.push_back(step.batch.id);
    weights.push_back(step.batch.weight);
    return f.engine(p);
  });
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0].numel(), 4);
  EXPECT_TRUE(ids[1].equal(at::tensor({11, 13}, at::kLong)));
  EXPECT_TRUE(weights[1].equal(at::tensor({2.0, 4.0}, at::kDouble)));
  EXPECT_EQ(step.batch.rows(), 4);
}

}  // namespace
}  // namespace huajin
