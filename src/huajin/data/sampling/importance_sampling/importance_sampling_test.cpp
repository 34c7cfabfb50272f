#include "huajin/data/sampling/importance_sampling/importance_sampling.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "conformance/bare_session.h"
#include "huajin/core/keyed.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

std::vector<double> numbers(const Tensor& t) {
  const Tensor flat = t.to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

Tensor vector_of(std::vector<double> values) {
  Tensor t = at::empty({static_cast<int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), t.mutable_data_ptr<double>());
  return t;
}

// All 4 x 4 ordered draws of two rows out of four, each with its probability: the mean of the weighted estimate is the mean of the four.
TEST(ImportanceSampling, IsUnbiasedOverAllDraws) {
  const auto p = numbers(importance_probabilities(vector_of({0.9, 0.01, 0.3, 0}), 0.1));
  const double g[4] = {1.5, -20, 3, 7};
  double expected = 0, total = 0;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      expected += p[i] * p[j] * 0.5 * (g[i] / (4 * p[i]) + g[j] / (4 * p[j]));
      total += p[i] * p[j];
    }
  EXPECT_NEAR(total, 1, 1e-14);
  EXPECT_NEAR(expected, (g[0] + g[1] + g[2] + g[3]) / 4, 1e-12);
}

TEST(ImportanceSampling, DrawsWithTheseProbabilities) {  // and the weighted mean of many batches is the mean within five standard errors
  const Tensor p = importance_probabilities(vector_of({0.9, 0.05, 0.3, 0.6, 0.02}), 0.05);
  const auto share = numbers(p);
  const double g[5] = {3, -1, 0.5, 8, 40};
  constexpr int kBatches = 4000, kRows = 8;
  std::vector<double> counts(5);
  double sum = 0, squares = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    const Tensor rows = draw_rows(p, kRows, mix(5, static_cast<uint64_t>(batch)));
    double estimate = 0;
    for (int j = 0; j < kRows; ++j) {
      const int64_t i = rows.const_data_ptr<int64_t>()[j];
      counts[static_cast<size_t>(i)]++;
      estimate += g[i] / (5 * share[static_cast<size_t>(i)]) / kRows;
    }
    sum += estimate;
    squares += estimate * estimate;
  }
  const double mean = sum / kBatches, deviation = std::sqrt(squares / kBatches - mean * mean);
  EXPECT_NEAR(mean, (3 - 1 + 0.5 + 8 + 40) / 5, 5 * deviation / std::sqrt(kBatches));
  double chi_square = 0;
  for (size_t i = 0; i < 5; ++i) chi_square += std::pow(counts[i] - kBatches * kRows * share[i], 2) / (kBatches * kRows * share[i]);
  EXPECT_LT(chi_square, 18.5);  // 4 degrees of freedom, p = 0.001
}

TEST(ImportanceSampling, HasLessVarianceThanUniformOnSkewedData) {  // exact variances of one draw, g in proportion to the score
  const Tensor scores = vector_of({10, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1});
  const auto p = numbers(importance_probabilities(scores, 0.1)), g = numbers(scores);
  double mean = 0, second_p = 0, second_uniform = 0;
  for (size_t i = 0; i < 8; ++i) {
    mean += g[i] / 8;
    second_p += p[i] * std::pow(g[i] / (8 * p[i]), 2);
    second_uniform += g[i] * g[i] / 8;
  }
  EXPECT_LT(second_p - mean * mean, 0.2 * (second_uniform - mean * mean));
  EXPECT_GT(variance_gain(importance_probabilities(scores, 0.1)), 2);
  EXPECT_NEAR(variance_gain(vector_of({0.25, 0.25, 0.25, 0.25})), 1, 1e-12);
}

TEST(ImportanceSampling, ScoreBoundsTheLastLayersGradient) {
  Tensor logits = at::empty({50, 6}, at::kDouble);
  fill_normal(logits, 4, 3);
  const Tensor targets = at::arange(50, at::kLong) % 6;
  const Tensor losses = -at::log_softmax(logits, 1).gather(1, targets.unsqueeze(1)).squeeze(1);
  const auto norms = numbers((at::softmax(logits, 1) - at::one_hot(targets, 6)).norm(2, 1)), scores = numbers(importance_scores(losses));
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_LE(scores[i], norms[i] + 1e-12);
    EXPECT_LE(norms[i], std::sqrt(2.0) * scores[i] + 1e-12);
  }
}

TEST(ImportanceSampling, SurvivesScoresThatAreZeroOrNotFinite) {
  EXPECT_EQ(numbers(importance_probabilities(vector_of({0, 0}), 0.1)), (std::vector<double>{0.5, 0.5}));
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(numbers(importance_scores(vector_of({inf, nan, 0}))), (std::vector<double>{1, 1, 0}));
}

TEST(ImportanceSampling, RepeatedRowsGetStreamsOfTheirOwn) {
  Batch batch;
  batch.id = at::arange(4, at::kLong) + 100;
  batch.extra["row"] = at::arange(4, at::kLong);
  Tensor rows = at::empty({5}, at::kLong);
  for (int i = 0; i < 5; ++i) rows[i] = std::vector<int64_t>{2, 2, 0, 2, 3}[static_cast<size_t>(i)];
  const Batch chosen = select_rows(batch, rows);
  EXPECT_TRUE(chosen.id.equal(rows + 100));
  EXPECT_TRUE(chosen.extra.at("row").equal(rows));
  EXPECT_EQ(chosen.noise[0].item<int64_t>(), 102);
  std::set<int64_t> streams;
  for (int i = 0; i < 5; ++i) streams.insert(chosen.noise[i].item<int64_t>());
  EXPECT_EQ(streams.size(), 5u);
}

TEST(ImportanceSampling, ScoresOnlyWhenTheGainPays) {
  BareSession session;
  int scored = 0;
  session.scores = [&](const Batch& b) {
    ++scored;
    return at::full({b.rows()}, 1.0, at::kDouble);
  };
  ImportanceSampling sampling({.presample = 3});
  Draw draw{4, 1, 1};
  sampling.on_draw(draw, {});
  EXPECT_EQ(draw.candidates, 3);
  const auto step_with = [&](const Tensor& example_loss) {
    session.batch.id = at::arange(12, at::kLong);
    Step step = session.step();
    sampling.on_batch(step);
    EXPECT_EQ(step.batch.rows(), 4);
    step.example_loss = example_loss;
    sampling.after_step(step);
  };
  for (int i = 0; i < 5; ++i) step_with(vector_of({1, 1, 1, 1}));
  EXPECT_EQ(scored, 0);  // equal losses: nothing to gain
  // One example in four matters: the gain of 4 rows tends to 2 = (3 + 3) / 3 only without a uniform share, so it never pays here ...
  for (int i = 0; i < 60; ++i) step_with(vector_of({5, 0, 0, 0}));
  EXPECT_EQ(scored, 0);
  ImportanceSampling eager({.presample = 3, .threshold = 1.5});  // ... but at a lower threshold it does
  session.batch.id = at::arange(12, at::kLong);
  for (int i = 0; i < 60; ++i) {
    session.batch.id = at::arange(12, at::kLong);
    Step step = session.step();
    eager.on_batch(step);
    step.example_loss = vector_of({5, 0, 0, 0});
    eager.after_step(step);
  }
  EXPECT_GT(scored, 0);
}

TEST(ImportanceSampling, WeighsTheDataTermInTheNumeratorOnly) {
  BareSession session;
  session.batch.id = at::arange(6, at::kLong);
  session.scores = [](const Batch& b) { return at::arange(b.rows(), at::kDouble); };
  ImportanceSampling sampling({.presample = 2, .threshold = 1});
  Step step = session.step();
  sampling.on_batch(step);
  Examples in;
  in.index = step.batch;
  const Loss loss = sampling.loss({}, in, [](const Outputs&, const Examples& e) {
    return Loss{{Term{"data", at::full({e.index.rows(), 2}, 1.0, at::kDouble), Per::kWeight, 1}}};
  });
  EXPECT_FALSE(in.index.weight.defined());
  const Tensor p = importance_probabilities(importance_scores(at::arange(6, at::kDouble)), 0.1).index_select(0, step.batch.id);
  EXPECT_LT((loss.terms[0].items.select(1, 1) - 1 / (6 * p)).abs().max().item<double>(), 1e-13);
}

}  // namespace
}  // namespace huajin
