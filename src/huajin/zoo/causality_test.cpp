// Gate G-5: outputs at t and before do not change by a bit when a later token does, on every attention path; and generation with a cache is the same
// function.
#include <gtest/gtest.h>

#include <map>

#include "huajin/zoo/attention.h"
#include "huajin/zoo/gpt2.h"
#include "huajin/zoo/llama.h"
#include "huajin/zoo/test_model.h"

namespace huajin {
namespace {

struct PlainCache : Cache {
  std::map<const Layer*, std::pair<Tensor, Tensor>> kept;
  std::pair<Tensor, Tensor> append(const Layer& where, const Tensor& k, const Tensor& v) override {
    auto& [keys, values] = kept[&where];
    keys = keys.defined() ? at::cat({keys, k}, 2) : k;
    values = values.defined() ? at::cat({values, v}, 2) : v;
    return {keys, values};
  }
};

struct CausalCase {
  const char* name;
  std::function<Model()> make_model;
};
const CausalCase kCausalCases[] = {
    {"gpt2", [] { return gpt2({.vocabulary = 23, .context = 40, .layers = 2, .heads = 2, .width = 32}); }},
    {"llama", [] { return llama({.vocabulary = 23, .context = 40, .layers = 2, .heads = 4, .width = 32, .kv_heads = 2}); }},
    {"llama_one_kv_head",
     [] { return llama({.vocabulary = 23, .context = 40, .layers = 2, .heads = 4, .width = 32, .kv_heads = 1, .qk_norm = true}); }},
    {"llama_relu2",
     [] {
       return llama({.vocabulary = 23, .context = 40, .layers = 2, .heads = 2, .width = 32, .activation = "relu2", .qk_norm = true, .tied = false});
     }},
};

class Causal : public testing::TestWithParam<CausalCase> {};

TEST_P(Causal, LaterTokensChangeNoBit) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    TestModel m(GetParam().make_model(), type == at::kDouble ? type : at::kFloat);
    m.shake(0.2);
    if (type == at::kBFloat16)
      for (size_t i = 0; i < m.values.size(); ++i)
        if (!m.entries[i].weight->options.keep_precision) m.values[i] = m.values[i].detach().to(type);
    at::NoGradGuard off;
    const int64_t length = 37;
    const Tensor ids = at::randint(23, {2, length}, at::kLong), before = m(ids);
    for (const int64_t t : {0, 15, 31, 35}) {
      Tensor changed = ids.clone();
      changed.narrow(1, t + 1, length - t - 1).add_(1).remainder_(23);
      const Tensor after = m(changed);
      EXPECT_TRUE(at::equal(after.narrow(1, 0, t + 1), before.narrow(1, 0, t + 1))) << "after token " << t << " in " << at::toString(type);
      EXPECT_FALSE(at::equal(after.narrow(1, t + 1, 1), before.narrow(1, t + 1, 1))) << "the changed token itself is seen";
    }
  }
}

TEST_P(Causal, CacheIsTheSameFunction) {
  TestModel m(GetParam().make_model(), at::kFloat);
  m.shake(0.2);
  at::NoGradGuard off;
  const Tensor ids = at::randint(23, {2, 24}, at::kLong), whole = m(ids);
  const std::vector<std::vector<int64_t>> chunkings{{24}, {10, 14}, {1, 22, 1}, std::vector<int64_t>(24, 1)};
  for (const auto& pieces : chunkings) {
    PlainCache cache;
    m.forward.cache = &cache;
    m.forward.position = 0;
    for (const int64_t n : pieces) {
      const Tensor logits = m(ids.narrow(1, m.forward.position, n));
      EXPECT_LE(relative_difference(logits, whole.narrow(1, m.forward.position, n)), 1e-5) << "at " << m.forward.position << " in pieces of " << n;
      m.forward.position += n;
    }
    m.forward.cache = nullptr;
    m.forward.position = 0;
  }
}
INSTANTIATE_TEST_SUITE_P(Models, Causal, testing::ValuesIn(kCausalCases), [](const auto& each) { return std::string(each.param.name); });

TEST(Attention, EqualsTheDefinition) {  // softmax over s <= t of q_t . k_s / sqrt(K), written with loops
  EngineForward f;
  struct Nowhere : Layer {
    Tensor forward(Forward&, const Tensor& x) const override { return x; }
  } where;
  const int64_t B = 2, H = 4, G = 2, T = 6, K = 3;
  const Tensor q = at::randn({B, H, T, K}, at::kDouble), k = at::randn({B, G, T, K}, at::kDouble), v = at::randn({B, G, T, K}, at::kDouble);
  const Tensor y = causal_attention(f, where, q, k, v);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t) {
        Tensor sum = at::zeros({K}, at::kDouble);
        double total = 0;
        for (int64_t s = 0; s <= t; ++s) {
          const double weight = std::exp((q[b][h][t] * k[b][h / (H / G)][s]).sum().item<double>() / std::sqrt(static_cast<double>(K)));
          sum += weight * v[b][h / (H / G)][s];
          total += weight;
        }
        EXPECT_LE((y[b][h][t] - sum / total).abs().max().item<double>(), 1e-12);
      }
}

}  // namespace
}  // namespace huajin
