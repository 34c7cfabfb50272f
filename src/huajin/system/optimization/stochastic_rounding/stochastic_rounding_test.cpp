#include "huajin/system/optimization/stochastic_rounding/stochastic_rounding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/bare_session.h"

namespace huajin {
namespace {

// One of the two neighbours, each as often as makes the mean exact: 5 standard errors of 200,000 draws.
TEST(StochasticRounding, IsRightOnAverage) {
  const int64_t draws = 200000;
  for (const auto dtype : {at::kFloat, at::kDouble})
    for (const double x : {1.001, -1.001, 3.14159, -2.0e-7, 65000.3, 1.0 + 0x1p-8}) {
      Tensor values = at::full({draws}, x, dtype);
      round_to_bfloat16(values, 17);
      const double step = std::ldexp(1.0, std::ilogb(x) - 7), exact = values.options().dtype() == at::kFloat ? static_cast<double>(static_cast<float>(x)) : x;
      EXPECT_TRUE(values.to(at::kBFloat16).to(dtype).equal(values)) << x;
      EXPECT_LT((values - exact).abs().max().item<double>(), step) << x;
      EXPECT_LT(std::abs(values.to(at::kDouble).mean().item<double>() - exact), 5 * step / 2 / std::sqrt(static_cast<double>(draws))) << x;
    }
}

TEST(StochasticRounding, LeavesWhatBfloat16Holds) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    Tensor values = at::tensor({0.0, -0.0, 1.0, -3.5, 0x1p-126, 0x1p-133, inf, -inf}, at::kDouble).to(dtype), before = values.clone();
    round_to_bfloat16(values, 3);
    EXPECT_TRUE(values.equal(before));
    Tensor nan = at::full({1}, std::nan(""), dtype);
    round_to_bfloat16(nan, 3);
    EXPECT_TRUE(std::isnan(nan.item<double>()));
  }
}

// 10,000 updates of a thousandth of the distance to the next number: rounding to the nearest would stay at 1 for ever.
TEST(StochasticRounding, KeepsUpdatesThatRoundingToTheNearestLoses) {
  BareSession session;
  Parameter& p = session.add("w", at::full({16, 16}, 1.0, at::kFloat));
  Parameter& gain = session.add("gain", at::full({16}, 1.0, at::kFloat));
  StochasticRounding technique({});
  const double update = 0x1p-7 / 1000;
  for (int64_t i = 0; i < 10000; ++i) {
    Step step = session.step(session.at(i, 0));
    technique.update(step, [&] { p.value.add_(update), gain.value.add_(update); });
  }
  EXPECT_NEAR(p.value.mean().item<double>(), 1 + 10000 * update, 5 * 0x1p-7 * std::sqrt(10.0 / 256));
  EXPECT_TRUE(p.value.to(at::kBFloat16).to(at::kFloat).equal(p.value));
  EXPECT_NEAR(gain.value[0].item<double>(), 1 + 10000 * update, 1e-3);  // vectors keep their precision
  Tensor nearest = at::full({1}, 1.0, at::kBFloat16);
  for (int i = 0; i < 100; ++i) nearest = (nearest.to(at::kFloat) + update).to(at::kBFloat16);
  EXPECT_EQ(nearest.item<double>(), 1);
}

TEST(StochasticRounding, DependsOnTheDrawAndNothingElse) {
  const auto once = [](int64_t draw) {
    BareSession session;
    Parameter& p = session.add("w", at::full({8, 8}, 1.003, at::kFloat));
    StochasticRounding technique({});
    Step step = session.step(session.at(draw, 0));
    technique.update(step, [] {});
    return p.value.clone();
  };
  EXPECT_TRUE(once(3).equal(once(3)));
  EXPECT_FALSE(once(3).equal(once(4)));
}

}  // namespace
}  // namespace huajin
