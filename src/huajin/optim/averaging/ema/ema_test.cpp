#include "huajin/optim/averaging/ema/ema.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(Ema, IsTheBiasCorrectedAverage) {  // sum_i d^(t-i) w_i / sum_i d^(t-i), with w_i = i^2
  const double d = 0.8;
  BareSession session;
  Parameter& p = session.add("w", at::full({2}, -7.0, at::kDouble));  // the value before the first update has no part in it
  Ema ema({.decay = d});
  ema.setup(session);
  double above = 0, below = 0;
  for (int i = 1; i <= 20; ++i) {
    p.value.fill_(i * i);
    Step step = session.step(session.at(i, 0.01 * i));
    ema.after_step(step);
    above = d * above + i * i;
    below = d * below + 1;
    EXPECT_NEAR(session.slot("ema.average", p)[1].item<double>(), above / below, 1e-11) << i;
  }
}

TEST(Ema, HalfLifeIsAFractionOfTheBudget) {  // whatever the number of steps: a weight set `half_life` ago counts half of one set now
  for (const int steps : {10, 1000}) {
    BareSession session;
    Parameter& p = session.add("w", at::full({1}, 0.0, at::kDouble));
    Ema ema({.half_life = 0.1});
    ema.setup(session);
    // An impulse at 0.8 and everything else 0: at the end it has 2^-2 of the weight that the last update has.
    double total = 0, impulse = 0;
    for (int i = 0; i <= steps; ++i) {
      const double fraction = static_cast<double>(i) / steps;
      p.value.fill_(i == steps * 8 / 10 ? 1.0 : 0.0);
      Step step = session.step(session.at(i, fraction));
      ema.after_step(step);
      total += std::exp2(-(1 - fraction) / 0.1);
      if (i == steps * 8 / 10) impulse = 0.25;
    }
    EXPECT_NEAR(session.slot("ema.average", p).item<double>(), impulse / total, 1e-12) << steps;
  }
}

TEST(Ema, EvaluatesTheAverage) {
  BareSession session;
  Parameter& p = session.add("w", at::arange(5, at::kFloat) / 3);
  Ema ema({.decay = 0.5});
  ema.setup(session);
  for (int i = 0; i < 3; ++i) {
    p.value.mul_(1.37);
    Step step = session.step(session.at(i, 0));
    ema.after_step(step);
  }
  const Tensor weights = p.value.clone(), average = session.slot("ema.average", p).clone();
  ema.evaluate(session, [&] { EXPECT_TRUE(p.value.equal(average)); });
  EXPECT_FALSE(weights.equal(average));
  EXPECT_TRUE(p.value.equal(weights));
}

// Each step's share multiplied out: w_i counts (i^(g+1) - (i-1)^(g+1)) / t^(g+1), a density of t^g over the run.
TEST(Ema, PowerFunctionHasItsClosedForm) {
  const double sigma = 0.15, g = power_ema_exponent(sigma);
  BareSession session;
  Parameter& p = session.add("w", at::full({2}, -7.0, at::kDouble));
  Ema ema({.sigma = sigma});
  ema.setup(session);
  for (int t = 1; t <= 50; ++t) {
    p.value.fill_(std::sin(t));
    Step step = session.step(session.at(t, 0.01 * t));
    ema.after_step(step);
    double wanted = 0;
    for (int i = 1; i <= t; ++i) wanted += std::sin(i) * (std::pow(i, g + 1) - std::pow(i - 1, g + 1)) / std::pow(t, g + 1);
    EXPECT_NEAR(session.slot("ema.average", p)[1].item<double>(), wanted, 1e-12) << t;
  }
}

TEST(Ema, PowerFunctionIsAsWideAsItsSigmaSays) {
  EXPECT_NEAR(power_ema_exponent(0.05), 16.97, 0.005);  // published: arXiv 2312.02696, section 3
  EXPECT_NEAR(power_ema_exponent(0.10), 6.94, 0.005);
  for (const double sigma : {0.02, 0.1, 0.25}) {  // mean and deviation of the age over t = 20000 updates
    const double g = power_ema_exponent(sigma), t = 20000;
    double sum = 0, mean = 0, square = 0;
    for (int i = 1; i <= t; ++i) {
      const double weight = std::pow(i / t, g + 1) - std::pow((i - 1) / t, g + 1);
      sum += weight, mean += weight * i / t, square += weight * (i / t) * (i / t);
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_NEAR(std::sqrt(square - mean * mean), sigma, 1e-3 * sigma);
  }
}

TEST(Ema, RefusesBothForms) { EXPECT_THROW(Ema({.decay = 0.9, .sigma = 0.1}), UserError); }

TEST(Ema, EvaluatesTheWeightsBeforeTheFirstUpdate) {
  BareSession session;
  Parameter& p = session.add("w", at::full({2}, 3.0, at::kDouble));
  Ema ema({});
  ema.setup(session);
  ema.evaluate(session, [&] { EXPECT_EQ(p.value[0].item<double>(), 3); });
}

}  // namespace
}  // namespace huajin
