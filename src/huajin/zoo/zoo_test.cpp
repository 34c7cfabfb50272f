#include "huajin/zoo/zoo.h"

#include <gtest/gtest.h>

#include "huajin/core/errors.h"
#include "huajin/core/recipe.h"
#include "huajin/zoo/convolution.h"
#include "huajin/zoo/gpt2.h"
#include "huajin/zoo/hugging_face.h"
#include "huajin/zoo/llama.h"
#include "huajin/zoo/test_model.h"

namespace huajin {
namespace {

Model built(const std::string& name, const ModelInput& input, std::map<std::string, std::string> keys = {}) {
  const Choice choice{name, std::move(keys), {}};
  ChoiceReader reader(choice, "model");
  Model m = find_model(name).build(reader, input);
  reader.finish();
  return m;
}
double numbers_of(Model& m) {
  double count = 0;
  for (auto& e : m.number()) {
    double size = 1;
    for (int64_t n : e.weight->shape) size *= static_cast<double>(n);
    if (e.weight->options.role != Role::kStatistic) count += size;
  }
  return count;
}

TEST(Zoo, EveryModelBuildsFromItsDefaultsAndRuns) {
  for (const ZooEntry& e : zoo()) {
    if (e.name.find("-1") != std::string::npos || e.name.find("-3") != std::string::npos || e.name.find("-7") != std::string::npos)
      continue;  // published sizes: large
    const ModelInput input{.classes = 7, .context = e.images ? 0 : 16, .channels = 3, .height = 32, .width = 32};
    TestModel m(built(e.name, input), at::kFloat);
    at::NoGradGuard off;
    const Tensor logits = m(e.images ? at::randn({2, 3, 32, 32}) : at::randint(7, {2, 16}, at::kLong));
    EXPECT_EQ(logits.sizes(), e.images ? at::IntArrayRef({2, 7}) : at::IntArrayRef({2, 16, 7})) << e.name;
    EXPECT_TRUE(logits.isfinite().all().item<bool>()) << e.name;
    EXPECT_GT(m.model.flops_per_row(e.images ? 1 : 16), 0) << e.name;
    EXPECT_EQ(m.model.blocks.size() >= 2, true) << e.name;
  }
}

TEST(Zoo, PublishedSizes) {
  Model gpt2 = built("gpt2-124m", {.classes = 50257, .context = 64});
  // 50304 x 768 table, 1024 x 768 positions, 12 blocks of 12 width^2 + 13 width, a norm.
  EXPECT_EQ(numbers_of(gpt2), 50304 * 768 + 1024 * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 2 * 768);
  EXPECT_EQ(gpt2.context, 1024);
  EXPECT_EQ(gpt2.flops_per_row(64), 2.0 * 64 * (12.0 * 12 * 768 * 768 + 50304.0 * 768) + 12 * 4.0 * 64 * 64 * 768);
}

TEST(Zoo, RolesDecideWhatDecaysAndWhatIsAHiddenMatrix) {
  for (const char* name : {"llama", "gpt2", "vit", "resnet", "small_cnn", "mlp"}) {
    Model m = built(name, {.classes = 7, .context = 16, .channels = 3, .height = 32, .width = 32});
    for (auto& e : m.number()) {
      const bool vector = e.weight->shape.size() < 2, positions = e.name.find("wpe") != std::string::npos ||
                                                                  e.name.find("position") != std::string::npos ||
                                                                  e.name.find("cls") != std::string::npos;
      const bool statistic = e.name.find("running_") != std::string::npos;
      const Role role = e.weight->options.role;
      const bool first = e.blocks.front() == 0 && std::string(name) != "mlp", last = e.blocks.front() == static_cast<int>(m.blocks.size()) - 1;
      const bool small = vector || positions;
      if (small && !statistic) {
        EXPECT_TRUE(role == Role::kNorm || role == Role::kBias) << e.name;
      } else {
        EXPECT_EQ(role, statistic ? Role::kStatistic : first ? Role::kEmbedding : last ? Role::kHead : Role::kHidden) << e.name;
      }
    }
  }
}

TEST(Zoo, ConfigurationReadsBackAsTheSameModel) {
  std::vector<Model> models;
  models.push_back(gpt2({.vocabulary = 9, .context = 5, .layers = 2, .heads = 2, .width = 8, .hidden = 12}));
  for (const char* activation : {"silu", "relu2"})
    for (const bool qk_norm : {false, true})
      models.push_back(llama({.vocabulary = 9,
                              .context = 5,
                              .layers = 2,
                              .heads = 4,
                              .width = 16,
                              .kv_heads = 2,
                              .head_size = 6,
                              .hidden = 20,
                              .activation = activation,
                              .qk_norm = qk_norm,
                              .tied = qk_norm}));
  models.push_back(built("vit", {.classes = 7, .channels = 3, .height = 32, .width = 32}));
  for (Model& m : models) {
    Model again = model_of_config(m.config_json, "test");
    EXPECT_EQ(again.config_json, m.config_json);
    EXPECT_EQ(again.context, m.context);
    const auto a = m.number(), b = again.number();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].name, b[i].name);
      EXPECT_EQ(a[i].weight->shape, b[i].weight->shape);
    }
  }
}

TEST(Zoo, BadSizesAreRefusedInOneLine) {
  const ModelInput text{.classes = 7, .context = 16}, wide{.classes = 7, .channels = 3, .height = 32, .width = 20},
      tiny{.classes = 7, .channels = 1, .height = 4, .width = 4};
  const std::tuple<std::string, ModelInput, std::map<std::string, std::string>, const char*> cases[] = {
      {"lama", text, {}, "llama"},
      {"llama", text, {{"width", "30"}, {"heads", "4"}}, "width"},
      {"llama", text, {{"heads", "4"}, {"kv_heads", "3"}}, "kv_heads"},
      {"llama", text, {{"layers", "0"}}, "layers"},
      {"llama", text, {{"laiers", "2"}}, "layers"},
      {"gpt2", text, {{"width", "12"}, {"heads", "4"}}, "even"},
      {"vit", wide, {}, "square"},
      {"vit", {.classes = 7, .channels = 3, .height = 30, .width = 30}, {}, "patch"},
      {"small_cnn", tiny, {}, "too small"},
      {"resnet", wide, {{"depth", "19"}}, "depth"},
  };
  for (auto& [name, input, keys, part] : cases) {
    try {
      built(name, input, keys);
      ADD_FAILURE() << name << " was accepted where " << part << " is wrong";
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(part), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(BatchNorm, RecordsTheBatchAndEvaluatesByTheRunningStatistics) {
  struct Body : Layer {
    Part<> norm{this, "norm", make<BatchNorm2d>(3, BatchNorm2d::Options{.momentum = 0.25})};
    Tensor forward(Forward& f, const Tensor& x) const override { return norm(f, x); }
  };
  Model model;
  model.add("", make<Body>());
  TestModel m(std::move(model));
  m.shake(0.5);
  const Tensor x = at::randn({4, 3, 5, 2}, at::kDouble) * 2 + 1;
  const Tensor flat = x.transpose(0, 1).reshape({3, -1});
  const Tensor mean = flat.mean(1), centred = flat - mean.unsqueeze(1);
  const auto value = [&](const std::string& name) -> Tensor& {
    for (size_t i = 0; i < m.entries.size(); ++i)
      if (m.entries[i].name == name) return m.values[i];
    throw Error(kExitInternal, name);
  };
  const auto shaped = [](const Tensor& t) { return t.view({1, 3, 1, 1}); };
  const auto expected = [&](const Tensor& centre, const Tensor& variance) {
    return (x - shaped(centre)) / (shaped(variance) + 1e-5).sqrt() * shaped(value("norm.weight")) + shaped(value("norm.bias"));
  };
  EXPECT_LE(relative_difference(m(x), expected(mean, centred.square().mean(1))), 1e-12);
  ASSERT_EQ(m.forward.recorded.size(), 2u);
  EXPECT_EQ(m.forward.recorded[0].count, 40);
  EXPECT_LE(relative_difference(m.forward.recorded[0].mean, mean), 1e-12);
  EXPECT_LE(relative_difference(m.forward.recorded[1].mean, centred.square().sum(1) / 39), 1e-10);
  value("norm.running_mean").copy_(at::rand({3}, at::kDouble));
  value("norm.running_var").copy_(at::rand({3}, at::kDouble) + 1);
  m.forward.training = false;
  EXPECT_LE(relative_difference(m(x), expected(value("norm.running_mean"), value("norm.running_var"))), 1e-12);
  EXPECT_TRUE(m.forward.recorded.empty());
}

TEST(Dropout, IsKeyedAndOffInEvaluation) {
  for (int kind = 0; kind < 2; ++kind) {
    TestModel m(kind ? gpt2({.vocabulary = 9, .context = 6, .layers = 2, .heads = 2, .width = 8, .dropout = 0.5})
                     : llama({.vocabulary = 9, .context = 6, .layers = 2, .heads = 2, .width = 8, .dropout = 0.5}));
    at::NoGradGuard off;
    m.shake(0.3);
    const Tensor ids = at::randint(9, {2, 6}, at::kLong);
    m.forward.noise_key = 1;
    const Tensor first = m(ids), again = m(ids);
    m.forward.noise_key = 2;
    const Tensor other = m(ids);
    m.forward.training = false;
    const Tensor whole = m(ids);
    EXPECT_TRUE(at::equal(first, again));
    EXPECT_FALSE(at::equal(first, other));
    EXPECT_FALSE(at::equal(first, whole));
  }
}

}  // namespace
}  // namespace huajin
