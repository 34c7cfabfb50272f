#include "huajin/model/initialization/initializer/initializer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/tiny.h"
#include "huajin/core/keyed.h"
#include "huajin/core/session.h"
#include "huajin/zoo/gpt2.h"

namespace huajin {
namespace {

struct LawWeight : Layer {
  explicit LawWeight(std::vector<int64_t> shape, Init init) : weight(this, "weight", std::move(shape), {.init = init}) {}
  Weight weight;
  Tensor forward(Forward&, const Tensor& x) const override { return x; }
};

Tensor law_sample(const InitializerConfig& config, int64_t out, int64_t in, uint64_t seed = 3) {
  const Init init = init_by_law(config, {static_cast<double>(in), static_cast<double>(out)});
  const LawWeight layer({out, in}, init);
  return initial_value(layer.weight, "w", seed, at::kDouble, at::kCPU);
}

// The sample's variance of n independent numbers has deviation sigma^2 sqrt((kurtosis - 1) / n); 5 of these.
TEST(Initializer, SampleVariancesAreThoseOfTheLaws) {
  const int64_t in = 300, out = 500;
  const double n = 300.0 * 500.0;
  for (const char* shape : {"normal", "uniform"})
    for (const auto& [law, variance] : {std::pair{"xavier", 2.0 / 800}, std::pair{"kaiming", 2.0 / 300}, std::pair{"kaiming_out", 2.0 / 500}}) {
      const Tensor w = law_sample({.law = law, .shape = shape}, out, in);
      const double kurtosis = std::string(shape) == "normal" ? 3 : 1.8;
      EXPECT_NEAR(w.square().mean().item<double>() / variance, 1, 5 * std::sqrt((kurtosis - 1) / n)) << law << " " << shape;
      EXPECT_NEAR(w.mean().item<double>(), 0, 5 * std::sqrt(variance / n)) << law << " " << shape;
      if (std::string(shape) == "uniform") {
        EXPECT_LE(w.abs().max().item<double>(), std::sqrt(3 * variance));
      }
    }
}

TEST(Initializer, OrthogonalColumnsAreOrthonormal) {
  const Tensor q = law_sample({.law = "orthogonal"}, 60, 40);
  EXPECT_LE((at::matmul(q.t(), q) - at::eye(40, q.options())).abs().max().item<double>(), 1e-12);
}

// 30 ReLU layers: Kaiming keeps the size of activations; a gain of 1 halves their mean square each time.
double relu_chain(const InitializerConfig& config, int64_t width, int layers) {
  Tensor x = at::empty({64, width}, at::kDouble);
  fill_normal(x, 11, 1);
  const double before = x.square().mean().item<double>();
  for (int l = 0; l < layers; ++l) x = at::relu(at::matmul(x, law_sample(config, width, width, 100 + static_cast<uint64_t>(l)).t()));
  return x.square().mean().item<double>() / before;
}

TEST(Initializer, KaimingKeepsTheVarianceOverThirtyReluLayers) {
  const double kept = relu_chain({.law = "kaiming"}, 512, 30);
  EXPECT_GT(kept, 0.3);
  EXPECT_LT(kept, 3);
  EXPECT_LT(relu_chain({.law = "kaiming", .gain = 1}, 512, 30), 1e-7);  // 2^-30
}

TEST(Initializer, FansOfFusedTransposedAndConvolution) {
  Model model = gpt2({.vocabulary = 11, .context = 4, .layers = 1, .heads = 1, .width = 8});
  const auto table = model.number();
  const auto transposed = transposed_weights(model);
  for (auto& entry : table) {
    if (entry.name != "transformer.h.0.attn.c_attn.weight" && entry.name != "transformer.h.0.mlp.c_proj.weight") continue;
    const Fans fans = fans_of(*entry.weight, transposed.at(entry.weight));
    EXPECT_EQ(fans.in, entry.name.find("c_attn") != entry.name.npos ? 8 : 32);
    EXPECT_EQ(fans.out, 8);  // a third of 24; 8
  }
  const LawWeight convolution({6, 4, 3, 3}, normal(1));
  EXPECT_EQ(fans_of(convolution.weight, false).in, 36);
  EXPECT_EQ(fans_of(convolution.weight, false).out, 54);
}

TEST(Initializer, ChangesHiddenMatricesOnly) {
  TinyOptions options;
  options.dtype = at::kDouble;
  TinyRun plain(options);
  options.techniques = {{"initializer", {{"law", "xavier"}}}};
  TinyRun made(options);
  for (size_t i = 0; i < plain.session().parameters().size(); ++i) {
    const Parameter& p = *plain.session().parameters()[i];
    const Parameter& q = *made.session().parameters()[i];
    EXPECT_EQ((p.value - q.value).abs().max().item<double>() > 0, p.hidden_matrix) << p.name;
  }
}

}  // namespace
}  // namespace huajin
