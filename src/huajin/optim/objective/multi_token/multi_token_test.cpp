#include "huajin/optim/objective/multi_token/multi_token.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "conformance/tiny.h"
#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"
#include "huajin/core/logits.h"

namespace huajin {
namespace {

Tensor multi_token_normal(std::vector<int64_t> shape, uint64_t key) {
  Tensor t = at::empty(shape, at::kDouble);
  fill_normal(t, key, 0.7);
  return t;
}

// Position t of head k against the token at t + k, one by one, with mask and weights.
TEST(MultiToken, SumsTheTokensFurtherOn) {
  Examples in;
  in.targets = at::tensor({1, 0, 2, 3, 3, 1, 0, 2}, at::kLong).view({2, 4});
  in.mask = at::tensor({1., 1., 1., 0., 1., 1., 0., 1.}, at::kDouble).view({2, 4});
  in.index.weight = at::tensor({1.0, 2.5}, at::kDouble);
  const Tensor logits = multi_token_normal({2, 4, 5}, 1), log_p = at::log_softmax(logits, -1);
  for (int64_t ahead = 1; ahead < 4; ++ahead) {
    double wanted = 0;
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t t = 0; t + ahead < 4; ++t) {
        const int64_t token = in.targets[r][t + ahead].item<int64_t>();
        wanted -= log_p[r][t][token].item<double>() * in.mask[r][t + ahead].item<double>() * in.index.weight[r].item<double>();
      }
    EXPECT_NEAR(multi_token_sum(*dense_logits(logits.slice(1, 0, 4 - ahead).contiguous()), in, ahead).item<double>(), wanted, 1e-12);
  }
}

TEST(MultiToken, GradientAgreesWithFiniteDifferences) {
  const Tensor hidden = multi_token_normal({1, 3, 4}, 2), out = multi_token_normal({4, 5}, 3), w = multi_token_normal({4, 4}, 4);
  Examples in;
  in.targets = at::tensor({1, 4, 2}, at::kLong).view({1, 3});
  const auto loss = [&](const Tensor& h, const Tensor& m) {
    return multi_token_sum(*dense_logits(at::matmul(multi_token_hidden(h.slice(1, 0, 2), m), out)), in, 1);
  };
  const Tensor leaf = w.clone().requires_grad_(true);
  torch::autograd::backward({loss(hidden, leaf)});
  for (int64_t i = 0; i < 16; ++i) {
    Tensor up = w.clone(), down = w.clone();
    up.view({-1})[i] += 1e-5, down.view({-1})[i] -= 1e-5;
    EXPECT_NEAR(leaf.grad().view({-1})[i].item<double>(), (loss(hidden, up) - loss(hidden, down)).item<double>() / 2e-5, 1e-8);
  }
}

TEST(MultiToken, BeginsAsTheFirstHead) {
  const Tensor hidden = multi_token_normal({2, 3, 4}, 2);
  EXPECT_TRUE(multi_token_hidden(hidden, at::zeros({4, 4}, at::kDouble)).equal(hidden));
}

// The further heads learn; evaluation is that of the first alone: before any step the same as without them, and no matrix of theirs changes it.
TEST(MultiToken, EvaluatesTheFirstHeadAlone) {
  TinyOptions plain, several;
  plain.text = several.text = true;
  several.techniques = {{"multi_token", {{"tokens", 3}}}};
  TinyRun a(plain), b(several);
  EXPECT_EQ(a.trainer().evaluate().loss, b.trainer().evaluate().loss);
  ASSERT_EQ(b.session().parameters().size(), a.session().parameters().size() + 2);
  for (int i = 0; i < 5; ++i) b.trainer().step();
  const double before = b.trainer().evaluate().loss;
  int further = 0;
  for (Parameter* p : b.session().parameters())
    if (p->name.find("multi_token.") != std::string::npos) {
      EXPECT_GT(p->value.abs().max().item<double>(), 0) << p->name;
      p->value.fill_(3);
      ++further;
    }
  EXPECT_EQ(further, 2);
  EXPECT_EQ(b.trainer().evaluate().loss, before);
}

TEST(MultiToken, RefusesLabels) {
  TinyOptions options;
  options.text = false;
  options.techniques = {{"multi_token", {{"tokens", 2}}}};
  EXPECT_THROW(TinyRun run(options), UserError);
}

}  // namespace
}  // namespace huajin
