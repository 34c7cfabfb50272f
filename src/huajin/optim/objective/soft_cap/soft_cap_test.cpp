#include "huajin/optim/objective/soft_cap/soft_cap.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "conformance/tiny.h"

namespace huajin {
namespace {

TEST(SoftCap, BoundsLogitsAndLeavesSmallOnesAlone) {
  const Tensor x = at::tensor({-1e6, -7.0, 0.0, 1e-4, 20.0, 1e6}, at::kDouble), y = soft_capped(x, 15);
  EXPECT_LE(y.abs().max().item<double>(), 15);
  EXPECT_NEAR(y[1].item<double>(), 15 * std::tanh(-7.0 / 15), 1e-12);
  EXPECT_EQ(y[2].item<double>(), 0);
  EXPECT_NEAR(y[3].item<double>(), 1e-4, 1e-13);
  EXPECT_EQ(soft_capped(x.to(at::kBFloat16), 15).scalar_type(), at::kFloat);
}

TEST(SoftCap, GradientAgreesWithFiniteDifferences) {
  const Tensor values = at::tensor({-40.0, -3.0, 0.0, 5.0, 22.0}, at::kDouble), leaf = values.clone().requires_grad_(true);
  torch::autograd::backward({soft_capped(leaf, 15).sum()});
  const Tensor wanted = (soft_capped(values + 1e-5, 15) - soft_capped(values - 1e-5, 15)) / 2e-5;
  EXPECT_LT((leaf.grad() - wanted).abs().max().item<double>(), 1e-8);
}

// The cap is the model's: the weights keep their names, and an evaluation sees it.
TEST(SoftCap, IsPartOfTheModel) {
  for (const bool text : {true, false}) {
    TinyOptions plain, capped;
    plain.text = capped.text = text;
    capped.techniques = {{"soft_cap", {{"cap", 0.01}}}};
    TinyRun a(plain), b(capped);
    ASSERT_EQ(a.session().parameters().size(), b.session().parameters().size());
    for (size_t i = 0; i < a.session().parameters().size(); ++i) EXPECT_EQ(a.session().parameters()[i]->name, b.session().parameters()[i]->name);
    const double classes = text ? 13 : 5;
    EXPECT_NEAR(b.trainer().evaluate().loss, std::log(classes), 0.03);  // all logits within 0.01 of zero
    EXPECT_GT(std::abs(a.trainer().evaluate().loss - std::log(classes)), 0.03);
  }
}

}  // namespace
}  // namespace huajin
