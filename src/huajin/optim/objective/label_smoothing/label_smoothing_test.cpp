#include "huajin/optim/objective/label_smoothing/label_smoothing.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "conformance/bare_session.h"
#include "huajin/core/block_execution.h"
#include "huajin/core/keyed.h"
#include "huajin/core/logits.h"

namespace huajin {
namespace {

// Against ATen's own smoothed cross-entropy, loss and gradient, in both types (float32 takes the fused path).
TEST(LabelSmoothing, EqualsAtensCrossEntropy) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    BareSession session;
    Step step = session.step();
    LabelSmoothing({.mass = 0.3}).on_batch(step);
    Tensor values = at::empty({6, 9}, dtype);
    fill_normal(values, 8, 2);
    Examples in;
    in.index = step.batch;
    in.targets = at::arange(6, at::kLong) + 2;
    const Tensor wanted_leaf = values.clone().requires_grad_(true), leaf = values.clone().requires_grad_(true);
    const Tensor wanted = at::cross_entropy_loss(wanted_leaf, in.targets, {}, /*reduction=*/0, -100, 0.3);
    Outputs out;
    out.logits = dense_logits(leaf * 1.0);
    const Tensor items = base_loss(out, in).data();
    EXPECT_LT((items - wanted).abs().max().item<double>(), dtype == at::kFloat ? 2e-6 : 1e-13);
    torch::autograd::backward({items.sum()});
    torch::autograd::backward({wanted.sum()});
    EXPECT_LT((leaf.grad() - wanted_leaf.grad()).abs().max().item<double>(), dtype == at::kFloat ? 1e-6 : 1e-13);
  }
}

TEST(LabelSmoothing, ComposesWithWhatIsSmoothAlready) {
  EXPECT_DOUBLE_EQ(smoothed(0, 0.1), 0.1);
  EXPECT_DOUBLE_EQ(smoothed(0.2, 0), 0.2);
  EXPECT_DOUBLE_EQ(smoothed(0.2, 0.1), 1 - 0.8 * 0.9);
}

}  // namespace
}  // namespace huajin
