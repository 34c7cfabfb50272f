// Choosing tokens, and generation with kept keys and values against generation that reads everything again.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "app/generation.h"
#include "huajin/core/communicator.h"
#include "huajin/core/recipe.h"
#include "huajin/core/registry.h"
#include "huajin/zoo/zoo.h"

namespace huajin {
namespace {

std::map<int64_t, double> frequencies(const std::vector<float>& logits, double temperature, int64_t top_k, double top_p) {
  std::map<int64_t, double> counts;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) counts[choose_token(logits, temperature, top_k, top_p, (i + 0.5) / kDraws)] += 1.0 / kDraws;
  return counts;
}

TEST(Generation, TokensComeWithTheirProbability) {
  const std::vector<float> logits{0.f, 1.f, -1.f, 2.f, 1.f};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    double sum = 0;
    for (const float l : logits) sum += std::exp(l / temperature);
    auto seen = frequencies(logits, temperature, 0, 1);
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(seen[static_cast<int64_t>(i)], std::exp(logits[i] / temperature) / sum, 1e-4);
  }
  EXPECT_EQ(choose_token(logits, 0, 0, 1, 0.99), 3);
  EXPECT_EQ(frequencies(logits, 1, 1, 1).size(), 1u);
  auto two = frequencies(logits, 1, 2, 1);  // 3, and of the equal 1 and 4 the smaller
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two[3], std::exp(2.0) / (std::exp(2.0) + std::exp(1.0)), 1e-4);
  EXPECT_EQ(two.count(4), 0u);
  // probabilities: 0.521 0.192 0.192 0.070 0.026 (3, 1, 4, 0, 2)
  EXPECT_EQ(frequencies(logits, 1, 0, 0.5).size(), 1u);
  EXPECT_EQ(frequencies(logits, 1, 0, 0.70).size(), 2u);
  EXPECT_EQ(frequencies(logits, 1, 0, 0.95).size(), 4u);
  EXPECT_EQ(choose_token(std::vector<float>{1e30f, -1e30f}, 0.01, 0, 1, 0.999999), 0);
}

class NoTokens : public Source {
 public:
  bool classifies() const override { return false; }
  int64_t size() const override { return 1000; }
  int64_t classes() const override { return 61; }
  Tensor ids(uint64_t, int64_t, int64_t rows, int64_t) const override { return at::empty({rows}, at::kLong); }
  int64_t units_per_row(int64_t length) const override { return length; }
  Examples load(const Tensor&, int64_t, const Tensor&, int64_t, bool) const override { return {}; }
};

std::unique_ptr<RunSession> session_of(const char* model, std::vector<std::string> sets) {
  Recipe recipe;
  recipe.model.name = model;
  recipe.schedule.name = "constant";
  for (auto& set : sets) recipe.set(set);
  ChoiceReader reader(recipe.model, "model");
  SessionOptions options;
  options.compute = options.master = at::kDouble;
  auto session = std::make_unique<RunSession>(std::make_unique<Model>(find_model(model).build(reader, ModelInput{61, 32, 0, 0, 0})),
                                              std::make_shared<NoTokens>(), make_techniques(catalog(), recipe), single_process(), options);
  session->build();
  return session;
}

TEST(Generation, KeptKeysAndValuesGiveTheLogitsOfReadingAllAgain) {
  at::NoGradGuard off;
  const std::vector<int64_t> tokens{3, 14, 15, 9, 26, 5, 35, 8, 57, 9, 32, 3};
  const Tensor all = at::tensor(tokens, at::kLong).unsqueeze(0);
  for (auto& [model, sets] : std::vector<std::pair<const char*, std::vector<std::string>>>{
           {"gpt2", {"model.layers=2", "model.width=16", "model.heads=2", "model.init=0.3"}},
           {"llama", {"model.layers=2", "model.width=16", "model.heads=4", "model.kv_heads=2", "model.qk_norm=true", "model.init=0.3"}}}) {
    auto session = session_of(model, sets);
    const Tensor whole = session->execution().logits(all, nullptr, 0);
    KeyValueCache cache;
    int64_t at = 0;
    for (const int64_t piece : {5, 1, 1, 3, 2}) {
      const Tensor part = session->execution().logits(all.narrow(1, at, piece), &cache, at);
      EXPECT_LT((part - whole.narrow(1, at, piece)).abs().max().item().toDouble(), 1e-12) << model << " at " << at;
      at += piece;
    }
    EXPECT_GT(whole.std().item().toDouble(), 1e-3) << "the model says something";
  }
}

TEST(Generation, TextGoesOnPastTheContextInWholeCharacters) {
  auto session = session_of("llama", {"model.layers=1", "model.width=16", "model.heads=2"});
  const auto tokenizer = character_tokenizer("abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ\xc3\xa4\xc3\xb6\xc3\xbc\xe4\xbd\xa0.,;\n");
  ASSERT_EQ(tokenizer->vocabulary(), 61);
  GenerateOptions options;
  options.tokens = 100;
  options.temperature = 5;
  std::string text;
  EXPECT_EQ(generate(*session, *tokenizer, "ab", options,
                     [&](std::string_view piece) {
                       EXPECT_NE(static_cast<unsigned char>(piece.back()) & 0xc0, 0xc0) << "half a character";
                       text += piece;
                     }),
            100);
  std::vector<uint32_t> ids;
  tokenizer->encode(text, ids);
  EXPECT_EQ(ids.size(), 100u);
}

}  // namespace
}  // namespace huajin
