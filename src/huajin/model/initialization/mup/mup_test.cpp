#include "huajin/model/initialization/mup/mup.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/tiny.h"
#include "huajin/core/communicator.h"
#include "huajin/core/errors.h"
#include "huajin/core/registry.h"
#include "huajin/model/initialization/mup/coordinate_check.h"
#include "huajin/zoo/gpt2.h"
#include "huajin/zoo/llama.h"
#include "huajin/zoo/mlp.h"

namespace huajin {
namespace {

using MupList = std::vector<double>;

Model gpt2_of(int64_t width, int64_t heads = 2) { return gpt2({.vocabulary = 13, .context = 6, .layers = 2, .heads = heads, .width = width}); }

// Width 256 against 64: a = b = 4; with as many heads r = 4. By hand from tables 3 and 8.
TEST(Mup, Gpt2FactorsForAdam) {
  Model wide = gpt2_of(256), base = gpt2_of(64);
  auto scales = width_scales(wide, base, MupRule::kAdam);
  EXPECT_EQ(scales.at("transformer.wte.weight").start, MupList{1});
  EXPECT_EQ(scales.at("transformer.wte.weight").rate, MupList{1});
  EXPECT_EQ(scales.at("transformer.wpe.weight").rate, MupList{1});
  EXPECT_EQ(scales.at("transformer.h.0.attn.c_attn.weight").start, (MupList{0.25, 0.5, 0.5}));
  EXPECT_EQ(scales.at("transformer.h.0.attn.c_attn.weight").rate, (MupList{0.125, 0.25, 0.25}));
  EXPECT_EQ(scales.at("transformer.h.0.attn.c_attn.bias").rate, (MupList{0.5, 1, 1}));
  EXPECT_EQ(scales.at("transformer.h.1.mlp.c_fc.weight").start, MupList{0.5});
  EXPECT_EQ(scales.at("transformer.h.1.mlp.c_proj.weight").rate, MupList{0.25});
  EXPECT_EQ(scales.at("transformer.h.1.ln_1.weight").rate, MupList{1});
  EXPECT_EQ(scales.at("transformer.ln_f.weight").start, MupList{0.25});  // the tied head's 1 / a
  EXPECT_EQ(scales.at("transformer.ln_f.weight").rate, MupList{0.25});
  EXPECT_EQ(scales.at("transformer.ln_f.bias").rate, MupList{0.25});
}

TEST(Mup, Gpt2FactorsForSgd) {
  Model wide = gpt2_of(256), base = gpt2_of(64);
  auto scales = width_scales(wide, base, MupRule::kSgd);
  EXPECT_EQ(scales.at("transformer.wte.weight").rate, MupList{4});
  EXPECT_EQ(scales.at("transformer.h.0.attn.c_attn.weight").rate, (MupList{0.25, 1, 1}));
  EXPECT_EQ(scales.at("transformer.h.0.attn.c_attn.bias").rate, (MupList{1, 4, 4}));
  EXPECT_EQ(scales.at("transformer.h.0.mlp.c_fc.weight").rate, MupList{1});
  EXPECT_EQ(scales.at("transformer.h.0.ln_2.weight").rate, MupList{4});
  EXPECT_EQ(scales.at("transformer.ln_f.weight").start, MupList{0.25});
  EXPECT_EQ(scales.at("transformer.ln_f.weight").rate, MupList{0.25});  // 4 / 4^2
}

TEST(Mup, LlamaUntiedWithMoreHeadsOrQkNorm) {
  const LlamaConfig small{.vocabulary = 13, .context = 6, .layers = 1, .heads = 2, .width = 32, .hidden = 96, .tied = false};
  LlamaConfig large = small;
  large.width = 128, large.heads = 8, large.hidden = 384;
  Model wide = llama(large), base = llama(small);
  auto scales = width_scales(wide, base, MupRule::kAdam);
  EXPECT_EQ(scales.at("model.layers.0.self_attn.q_proj.weight").start, MupList{0.5});  // heads of one size: scores need nothing
  EXPECT_EQ(scales.at("model.layers.0.self_attn.q_proj.weight").rate, MupList{0.25});
  EXPECT_EQ(scales.at("model.norm.weight").start, MupList{1});
  EXPECT_EQ(scales.at("lm_head.weight").start, MupList{0.25});
  EXPECT_EQ(scales.at("lm_head.weight").rate, MupList{0.25});
  EXPECT_EQ(scales.at("model.embed_tokens.weight").start, MupList{1});
  large.heads = 2, large.qk_norm = true;
  LlamaConfig normed = small;
  normed.qk_norm = true;
  Model wide_normed = llama(large), base_normed = llama(normed);
  scales = width_scales(wide_normed, base_normed, MupRule::kAdam);
  EXPECT_EQ(scales.at("model.layers.0.self_attn.q_norm.weight").start, MupList{0.5});  // a normalised query forgets its projection's size
  EXPECT_EQ(scales.at("model.layers.0.self_attn.q_norm.weight").rate, MupList{0.5});
  EXPECT_EQ(scales.at("model.layers.0.self_attn.q_proj.weight").start, MupList{0.5});
  EXPECT_EQ(scales.at("model.layers.0.self_attn.k_norm.weight").start, MupList{1});
}

TEST(Mup, HiddenWidthThatStaysIsNoWidth) {  // mlp.hidden given: c_fc maps width to a fixed size, c_proj back
  const auto fixed = [](int64_t width) { return gpt2({.vocabulary = 13, .context = 6, .layers = 1, .heads = 2, .width = width, .hidden = 96}); };
  Model wide = fixed(128), base = fixed(32);
  const auto scales = width_scales(wide, base, MupRule::kAdam);
  EXPECT_EQ(scales.at("transformer.h.0.mlp.c_fc.weight").start, MupList{0.25});  // an output
  EXPECT_EQ(scales.at("transformer.h.0.mlp.c_fc.weight").rate, MupList{0.25});
  EXPECT_EQ(scales.at("transformer.h.0.mlp.c_proj.weight").start, MupList{1});  // an input
  EXPECT_EQ(scales.at("transformer.h.0.mlp.c_proj.weight").rate, MupList{1});
}

TEST(Mup, DeclaredDeviationsOfAnMlpCount) {  // it declares sqrt(2 / fan-in), and sqrt(1 / width) for the head
  Model wide = mlp({.inputs = 20, .width = 64}), base = mlp({.inputs = 20, .width = 16});
  const auto scales = width_scales(wide, base, MupRule::kSgd);
  EXPECT_EQ(scales.at("layers.0.weight").start, MupList{1});
  EXPECT_EQ(scales.at("layers.0.weight").rate, MupList{4});
  EXPECT_NEAR(scales.at("layers.1.weight").start[0], 1, 1e-12);
  EXPECT_EQ(scales.at("layers.1.weight").rate, MupList{1});
  EXPECT_NEAR(scales.at("head.weight").start[0], 0.5, 1e-12);
  EXPECT_EQ(scales.at("head.weight").rate, MupList{0.25});
  EXPECT_EQ(scales.at("head.bias").rate, MupList{1});
}

TEST(Mup, DeviationOfOrthogonalWeights) {
  EXPECT_NEAR(element_deviation(orthogonal(2), {64, 16}), 0.25, 1e-12);
  EXPECT_NEAR(element_deviation(uniform(3), {64, 16}), std::sqrt(3.0), 1e-12);
  EXPECT_EQ(element_deviation(zeros(), {64, 16}), 0);
}

struct GradientsSeen : Technique {
  std::string_view name() const override { return "gradients_seen"; }
  void on_gradients(Step& step) override {
    for (Parameter* p : step.session.parameters()) seen[p->name] = p->grad.clone();
  }
  std::map<std::string, Tensor> seen;
};

TEST(Mup, RatesAreThoseOfTheTable) {  // vectors, width 12 against 6, SGD: an element moves by rate x factor x gradient
  auto gradients = std::make_shared<GradientsSeen>();
  TinyOptions options;
  options.dtype = at::kDouble;
  options.optimizer = {"sgd", {{"learning_rate", 0.1}, {"momentum", 0}, {"weight_decay", 0}}};
  options.techniques = {{"mup", {{"base_width", 6}}}};
  options.after = {gradients};
  TinyRun run(options);
  std::map<std::string, Tensor> before;
  for (Parameter* p : run.session().parameters()) before[p->name] = p->value.clone();
  run.trainer().step();
  const std::map<std::string, double> expected{{"body.weight", 2}, {"body.bias", 2}, {"middle.weight", 1}, {"top.weight", 0.5}};
  for (Parameter* p : run.session().parameters()) {
    const Tensor moved = p->value - before.at(p->name) + 0.1 * expected.at(p->name) * gradients->seen.at(p->name);
    EXPECT_LE(moved.abs().max().item<double>(), 1e-15) << p->name;
  }
}

TEST(Mup, StartsAreThoseOfTheTableAndAveragesFollow) {
  TinyOptions options;
  options.dtype = at::kDouble;
  options.techniques = {{"ema", {{"decay", 0.9}}}};
  TinyRun plain(options);
  options.techniques.push_back({"mup", {{"base_width", 3}}});
  TinyRun scaled(options);
  const std::map<std::string, double> expected{{"body.weight", 1}, {"body.bias", 1}, {"middle.weight", 0.5}, {"top.weight", 0.25}};
  for (size_t i = 0; i < plain.session().parameters().size(); ++i) {
    const Parameter& p = *plain.session().parameters()[i];
    const Parameter& q = *scaled.session().parameters()[i];
    EXPECT_EQ((q.value - expected.at(p.name) * p.value).abs().max().item<double>(), 0) << p.name;
    scaled.session().each_slot(q, [&](SlotKind kind, Tensor& slot) {
      if (kind == SlotKind::kValue) {
        EXPECT_EQ((slot - q.value).abs().max().item<double>(), 0) << p.name;
      }
    });
  }
}

TEST(Mup, AtTheBaseWidthItIsTheStandardRun) {
  for (const bool text : {true, false}) {
    TinyOptions options;
    options.text = text;
    options.optimizer = {"adamw", {{"learning_rate", 0.02}}};
    const Trace plain = train(options);
    options.techniques = {{"mup", {{"base_width", text ? 16 : 12}}}};
    EXPECT_EQ(difference(train(options), plain), "");
  }
}

TEST(Mup, RefusesOptimizersWithoutARule) {
  for (const char* optimizer : {"muon", "lamb", "lars", "adafactor", "sophia"}) {
    TinyOptions options;
    options.optimizer = {optimizer, {{"learning_rate", 0.02}}};
    options.techniques = {{"mup", {{"base_width", 6}}}};
    try {
      TinyRun run(options);
      ADD_FAILURE() << optimizer;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(optimizer), std::string::npos) << error.what();
    }
  }
}

// Sizes of each block's output after four updates of a text model, at widths of 64 to 512.
using SizesOfWidths = std::map<int64_t, std::vector<std::pair<std::string, double>>>;
SizesOfWidths sizes_by_width(bool is_gpt2, const Named& optimizer, bool with_mup) {
  SizesOfWidths sizes;
  for (const int64_t width : {64, 128, 256, 512}) {
    const auto model = [is_gpt2](int64_t w) {
      return std::make_unique<Model>(is_gpt2 ? gpt2_of(w) : llama({.vocabulary = 13, .context = 6, .layers = 2, .heads = 2, .width = w, .tied = false}));
    };
    Recipe recipe;
    recipe.optimizer = choice_of(optimizer);
    recipe.schedule = choice_of({"constant", nlohmann::json::object()});
    if (with_mup) recipe.techniques.push_back(choice_of({"mup", {{"base_width", 64}}}));
    RunSession session(model(width), tiny_source(true), make_techniques(catalog(), recipe), single_process(), SessionOptions{.loader_workers = 0});
    session.model_maker = [&] { return model(width); };
    session.model_of_width = [&](int64_t w, int64_t) { return model(w); };
    session.build();
    TrainerOptions options;
    options.limits.steps = 100;
    options.length = 6;
    Trainer trainer(session, options, nullptr, nullptr);
    sizes[width] = activation_sizes(session, trainer, 4);
  }
  return sizes;
}

double growth(const SizesOfWidths& sizes, size_t block) { return sizes.at(512)[block].second / sizes.at(64)[block].second; }

void expect_flat(const SizesOfWidths& sizes) {
  for (size_t block = 0; block < sizes.at(64).size(); ++block) {
    if (sizes.at(64)[block].first == "transformer.ln_f") continue;  // carries the tied head's 1 / width on purpose
    double least = 1e300, most = 0;
    for (auto& [width, blocks] : sizes) least = std::min(least, blocks[block].second), most = std::max(most, blocks[block].second);
    EXPECT_LT(most / least, 1.7) << sizes.at(64)[block].first;
  }
}

TEST(Mup, CoordinateCheck) {
  for (const bool is_gpt2 : {true, false}) {
    const Named adam{"adamw", {{"learning_rate", 0.001}}};
    expect_flat(sizes_by_width(is_gpt2, adam, true));
    const SizesOfWidths standard = sizes_by_width(is_gpt2, adam, false);
    EXPECT_GT(growth(standard, standard.at(64).size() - 1), 3) << "logits of the standard parametrization grow with the width";
    EXPECT_GT(growth(standard, 2), 8) << "as does the residual stream";
  }
}

TEST(Mup, CoordinateCheckWithSgd) {
  const Named sgd{"sgd", {{"learning_rate", 0.5}, {"momentum", 0}}};
  expect_flat(sizes_by_width(false, sgd, true));
}

}  // namespace
}  // namespace huajin
