// Gradients of every named weight against finite differences in float64: the models that no reference library has.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "huajin/core/recipe.h"
#include "huajin/zoo/fused.h"
#include "huajin/zoo/llama.h"
#include "huajin/zoo/mlp.h"
#include "huajin/zoo/resnet.h"
#include "huajin/zoo/small_cnn.h"
#include "huajin/zoo/test_model.h"

namespace huajin {
namespace {

// dL/dw . v against (L(w + h v) - L(w - h v)) / 2h for a random v of each weight: an error in any element shows. Names what differs.
std::string wrong_against_differences(TestModel& m, const Tensor& inputs, double tolerance, double step = 1e-5) {
  const Tensor probe = at::randn_like(m(inputs).detach());
  const auto loss = [&] { return (m(inputs) * probe).sum(); };
  torch::autograd::backward({loss()});
  std::string wrong;
  for (size_t i = 0; i < m.values.size(); ++i) {
    Tensor& w = m.values[i];
    if (!w.requires_grad()) continue;
    if (!w.grad().defined()) return m.entries[i].name + " got no gradient";
    at::NoGradGuard off;
    const Tensor v = at::randn_like(w), before = w.clone();
    const auto loss_at = [&](double h) {
      w.copy_(before + h * v);
      return loss().item<double>();
    };
    const double expected = (loss_at(step) - loss_at(-step)) / (2 * step);
    w.copy_(before);
    const double got = (w.grad() * v).sum().item<double>(), scale = (w.grad() * v).norm().item<double>();
    if (!(std::abs(got - expected) <= tolerance * std::max(scale, std::abs(expected))))
      wrong += m.entries[i].name + ": " + std::to_string(got) + " for " + std::to_string(expected) + "; ";
  }
  return wrong;
}

TEST(Gradient, LlamaReluSquared) {
  TestModel m(llama(
      {.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 12, .kv_heads = 1, .activation = "relu2", .qk_norm = true, .dropout = 0.3}));
  m.shake(0.3);
  EXPECT_EQ(wrong_against_differences(m, at::randint(11, {2, 7}, at::kLong), 1e-6), "");
}
TEST(Gradient, Mlp) {
  for (const char* activation : {"relu", "gelu", "relu2"}) {
    TestModel m(mlp({.classes = 3, .inputs = 12, .layers = 2, .width = 7, .activation = activation}));
    m.shake(0.1);
    EXPECT_EQ(wrong_against_differences(m, at::randn({4, 3, 2, 2}, at::kDouble), 1e-6), "") << activation;
  }
}
TEST(Gradient, ResNet) {
  for (bool large : {false, true}) {
    TestModel m(resnet({.classes = 3, .channels = 2, .height = 18, .width = 14, .depth = 10, .filters = 3, .large_stem = large}));
    m.shake(0.1);
    // A short step: rectified units must not change side on the way.
    EXPECT_EQ(wrong_against_differences(m, at::randn({4, 2, 18, 14}, at::kDouble), 1e-5, 1e-8), "");
  }
}
TEST(Gradient, SmallCnn) {
  TestModel m(small_cnn({.classes = 3, .channels = 3, .height = 17, .width = 17, .first = 4, .group1 = 5, .group2 = 6, .group3 = 7}));
  m.shake(0.1);
  EXPECT_EQ(wrong_against_differences(m, at::randn({3, 3, 17, 17}, at::kDouble), 1e-5), "");
}

// The kernels against the same formula in tensor operations differentiated by autograd, at sizes that leave remainders in vectors and in threads'
// shares.
TEST(Fused, KernelsEqualAutogradOfTheFormula) {
  for (const auto type : {at::kDouble, at::kFloat})
    for (const int64_t size : {2, 6, 16, 34, 130}) {
      const auto options = at::TensorOptions(type);
      const int64_t rows = size == 130 ? 700 : 3;  // many rows: several parts of a weight's gradient
      std::vector<Tensor> leaves{at::randn({2, rows, 3, size}, options), at::randn({size}, options), at::randn({2, rows, 3, size}, options)};
      const Tensor probe = at::randn({2, rows, 3, size}, options);
      const Tensor angle = at::rand({rows, size / 2}, options) * 6;
      const auto half = [&](const Tensor& t, int64_t which) { return t.narrow(3, which * size / 2, size / 2); };
      const auto norm = [&](const Tensor& x, const Tensor& w) { return x * at::rsqrt(x.square().mean(-1, true) + 1e-5) * w; };
      const auto turn = [&](const Tensor& x) {
        const Tensor c = angle.cos().unsqueeze(1), s = angle.sin().unsqueeze(1);
        return at::cat({half(x, 0) * c - half(x, 1) * s, half(x, 1) * c + half(x, 0) * s}, 3);
      };
      using Op = std::function<Tensor(const std::vector<Tensor>&)>;
      const std::vector<std::tuple<const char*, Op, Op>> pairs{
          {"rms_norm", [&](auto& l) { return fused::rms_norm(l[0], l[1], 1e-5); }, [&](auto& l) { return norm(l[0], l[1]); }},
          {"relu_squared", [&](auto& l) { return fused::relu_squared(l[0]); }, [&](auto& l) { return at::relu(l[0]).square(); }},
          {"gelu_tanh", [&](auto& l) { return fused::gelu_tanh(l[0]); }, [&](auto& l) { return at::gelu(l[0], "tanh"); }},
          {"gated_silu", [&](auto& l) { return fused::gated_silu(l[0], l[2]); }, [&](auto& l) { return l[0] * at::sigmoid(l[0]) * l[2]; }},
          {"rotate", [&](auto& l) { return fused::rotate(l[0], Tensor(), 1e-5, angle.cos(), angle.sin()); }, [&](auto& l) { return turn(l[0]); }},
          {"normed rotate", [&](auto& l) { return fused::rotate(l[0], l[1], 1e-5, angle.cos(), angle.sin()); },
           [&](auto& l) { return turn(norm(l[0], l[1])); }},
      };
      for (auto& [name, kernel, formula] : pairs) {
        std::vector<std::vector<Tensor>> grads;
        std::vector<Tensor> results;
        for (const bool wide : {false, true}) {
          std::vector<Tensor> l;
          for (auto& t : leaves) l.push_back(t.clone().requires_grad_(true));
          const Tensor y = wide ? formula(l) : kernel(l);
          torch::autograd::backward({(y * probe).sum()});
          results.push_back(y.detach());
          grads.emplace_back();
          for (auto& t : l) grads.back().push_back(t.grad());
        }
        const double tolerance = type == at::kDouble ? 1e-12 : 1e-5;
        EXPECT_LE(relative_difference(results[0], results[1]), tolerance) << name << " " << size;
        for (size_t i = 0; i < leaves.size(); ++i) {
          ASSERT_EQ(grads[0][i].defined(), grads[1][i].defined()) << name;
          if (!grads[0][i].defined()) continue;
          EXPECT_LE(relative_difference(grads[0][i], grads[1][i]), tolerance) << name << " gradient " << i << " size " << size;
        }
      }
    }
}

TEST(Fused, WeightGradientHasTheSameBitsForAnyThreads) {
  const int before = at::get_num_threads();
  const Tensor x = at::randn({900, 130}), probe = at::randn({900, 130});
  std::vector<Tensor> grads;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    Tensor w = at::ones({130}).requires_grad_(true);
    torch::autograd::backward({(fused::rms_norm(x, w, 1e-5) * probe).sum()});
    grads.push_back(w.grad());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(grads[0], grads[1]));
  EXPECT_TRUE(at::equal(grads[0], grads[2]));
}

}  // namespace
}  // namespace huajin
