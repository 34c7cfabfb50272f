#include "huajin/model/initialization/shrink_and_perturb/shrink_and_perturb.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "conformance/tiny.h"

namespace huajin {
namespace {

TEST(ShrinkAndPerturb, OneAndZeroIsTheIdentity) {
  Tensor w = at::full({7, 3}, 0.3, at::kDouble);
  shrink_and_perturb(w, {.shrink = 1, .noise = 0}, 5);
  EXPECT_TRUE(at::equal(w, at::full({7, 3}, 0.3, at::kDouble)));
}

TEST(ShrinkAndPerturb, ScaleAndVarianceOfTheNoise) {
  const int64_t n = 40000;
  Tensor w = at::full({200, 200}, 2.0, at::kDouble);
  shrink_and_perturb(w, {.shrink = 0.4, .noise = 0.3}, 5);
  const Tensor noise = w - 0.8;
  EXPECT_NEAR(noise.mean().item<double>(), 0, 5 * 0.3 / std::sqrt(n));
  EXPECT_NEAR(noise.square().mean().item<double>() / 0.09, 1, 5 * std::sqrt(2.0 / n));
  Tensor again = at::full({200, 200}, 2.0, at::kDouble), other = again.clone();
  shrink_and_perturb(again, {.shrink = 0.4, .noise = 0.3}, 5);
  shrink_and_perturb(other, {.shrink = 0.4, .noise = 0.3}, 6);
  EXPECT_TRUE(at::equal(again, w));
  EXPECT_FALSE(at::equal(other, w));
}

// With a rate of almost nothing, what a step leaves is what the technique made; a second step changes nothing more.
TEST(ShrinkAndPerturb, OnceBeforeTheFirstStepAndNotBiases) {
  TinyOptions options;
  options.dtype = at::kDouble;
  options.optimizer = {"sgd", {{"learning_rate", 1e-12}}};
  options.techniques = {{"shrink_and_perturb", {{"shrink", 0.5}, {"noise", 0}}}, {"ema", {{"decay", 0.5}}}};
  TinyRun run(options);
  std::map<std::string, Tensor> before;
  for (Parameter* p : run.session().parameters()) before[p->name] = p->value.clone();
  for (int i = 0; i < 2; ++i) {
    run.trainer().step();
    for (Parameter* p : run.session().parameters()) {
      const double factor = p->shape.size() >= 2 ? 0.5 : 1;
      EXPECT_LE((p->value - factor * before.at(p->name)).abs().max().item<double>(), 1e-10) << p->name;
    }
  }
}

}  // namespace
}  // namespace huajin
