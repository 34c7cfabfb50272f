#include "huajin/optim/learning_rate/layer_decay/layer_decay.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "conformance/tiny.h"
#include "huajin/zoo/gpt2.h"

namespace huajin {
namespace {

std::map<std::string, Tensor> weights_after(TinyOptions options, int steps) {
  TinyRun run(options);
  for (int i = 0; i < steps; ++i) run.trainer().step();
  std::map<std::string, Tensor> weights;
  for (Parameter* p : run.session().parameters()) weights[p->name] = p->value.clone();
  return weights;
}

TEST(LayerDecay, CountsBlocksFromTheHead) {
  Model model = gpt2({.vocabulary = 11, .context = 4, .layers = 3, .heads = 1, .width = 4});
  const auto table = model.number();
  const std::vector<double> rates = layer_rates(table, 0.5);
  std::map<std::string, double> by_name;
  for (size_t i = 0; i < table.size(); ++i) by_name[table[i].name] = rates[i];
  // embedding, h.0, h.1, h.2, ln_f, head: the head is tied to the embedding of tokens and has no weight of its own
  EXPECT_EQ(by_name.at("transformer.wte.weight"), 1);
  EXPECT_EQ(by_name.at("transformer.ln_f.weight"), 0.5);
  EXPECT_EQ(by_name.at("transformer.h.2.mlp.c_fc.weight"), 0.25);
  EXPECT_EQ(by_name.at("transformer.h.0.ln_1.bias"), 0.0625);
  EXPECT_EQ(by_name.at("transformer.wpe.weight"), 0.03125);
}

// The first step of each optimizer, from the same weights and gradients: decay^(L - l) as far, for each weight.
TEST(LayerDecay, ScalesTheStepOfEveryOptimizer) {
  for (const Named& optimizer : {Named{"sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.1}}},
                                 Named{"adamw", {{"learning_rate", 0.01}, {"weight_decay", 0.5}}}, Named{"muon", {{"learning_rate", 0.05}}}})
    for (const bool text : {false, true}) {
      TinyOptions options;
      options.text = text;
      options.dtype = at::kDouble;
      options.optimizer = optimizer;
      const auto start = weights_after(options, 0), plain = weights_after(options, 1);
      options.techniques = {{"layer_decay", {{"decay", 0.5}}}};
      const auto decayed = weights_after(options, 1);
      int moved = 0;
      for (auto& [name, w] : start) {
        const double rate = text ? (name.find("layers.0") != name.npos ? 0.125 : name.find("layers.1") != name.npos ? 0.25 : name.find("norm.weight") == 6 ? 0.5 : 1)
                                 : (name.find("body") == 0 ? 0.25 : name.find("middle") == 0 ? 0.5 : 1);
        EXPECT_LE((decayed.at(name) - w - rate * (plain.at(name) - w)).abs().max().item<double>(), 1e-14) << optimizer.first << " " << name;
        moved += (decayed.at(name) - w).abs().max().item<double>() > 1e-6;
      }
      EXPECT_GE(moved, 3);
    }
}

// With SGD it is the rate itself, over any number of steps: a run whose gradients of each block are scaled takes the same path.
struct ScaleGradients : Technique {
  std::string_view name() const override { return "scale_gradients"; }
  void on_gradients(Step& step) override {
    for (Parameter* p : step.session.parameters()) p->grad = p->grad * (p->name.find("body") == 0 ? 0.25 : p->name.find("middle") == 0 ? 0.5 : 1.0);
  }
};

TEST(LayerDecay, IsARateForEachBlockOfSgd) {
  TinyOptions options;
  options.dtype = at::kDouble;
  options.optimizer = {"sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}, {"weight_decay", 0}}};
  TinyOptions scaled = options;
  scaled.after = {std::make_shared<ScaleGradients>()};
  options.techniques = {{"layer_decay", {{"decay", 0.5}}}};
  const auto a = weights_after(options, 10), b = weights_after(scaled, 10);
  for (auto& [name, w] : a) EXPECT_LE((w - b.at(name)).abs().max().item<double>(), 1e-13) << name;
}

}  // namespace
}  // namespace huajin
