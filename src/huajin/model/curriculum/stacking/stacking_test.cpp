#include "huajin/model/curriculum/stacking/stacking.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/tiny.h"
#include "huajin/core/errors.h"
#include "huajin/core/session.h"
#include "huajin/core/trainer.h"

namespace huajin {
namespace {

TEST(Stacking, NamesWhereALayerStarts) {
  EXPECT_EQ(stacked_source("model.layers.3.mlp.weight", "model.layers", 2), "model.layers.1.mlp.weight");
  EXPECT_EQ(stacked_source("model.layers.1.mlp.weight", "model.layers", 2), "model.layers.1.mlp.weight");
  EXPECT_EQ(stacked_source("model.layers.11.x", "model.layers", 6), "model.layers.5.x");
  EXPECT_EQ(stacked_source("model.norm.weight", "model.layers", 2), "model.norm.weight");
}

TEST(Stacking, SpreadsDoublingsOverTheBudget) {
  const StackingConfig config{.doublings = 2, .until = 0.5};
  EXPECT_EQ(doublings_due(config, 0.2), 0);
  EXPECT_EQ(doublings_due(config, 0.25), 1);
  EXPECT_EQ(doublings_due(config, 0.49), 1);
  EXPECT_EQ(doublings_due(config, 0.5), 2);
  EXPECT_EQ(doublings_due(config, 1), 2);
}

const Parameter& named(RunSession& session, const std::string& name) {
  for (auto& p : session.table().parameters)
    if (p.name == name) return p;
  throw std::out_of_range(name);
}

// Layer i + L/2 equals layer i at the moment of stacking, in weights and in both moments of AdamW; before it the model is half as deep.
TEST(Stacking, CopiesLayersWithTheirOptimizerState) {
  TinyRun run({.techniques = {{"stacking", {{"doublings", 1}, {"until", 0.5}}}}, .optimizer = {"adamw", {}}, .text = true, .steps = 8});
  ASSERT_EQ(find_stack(run.session().model()).depth, 1);
  while (run.trainer().state().progress.step < 4) run.trainer().step();
  ASSERT_EQ(find_stack(run.session().model()).depth, 1);
  run.trainer().step();  // starts at half of the budget
  ASSERT_EQ(find_stack(run.session().model()).depth, 2);
  int compared = 0;
  for (auto& p : run.session().table().parameters) {
    const std::string prefix = find_stack(run.session().model()).prefix + ".0.";
    if (!p.name.starts_with(prefix)) continue;
    const Parameter& copy = named(run.session(), prefix.substr(0, prefix.size() - 2) + "1." + p.name.substr(prefix.size()));
    EXPECT_TRUE(copy.value.equal(p.value)) << p.name;
    EXPECT_NE(copy.value.const_data_ptr(), p.value.const_data_ptr());
    for (const char* slot : {"adamw.m", "adamw.v"}) {
      EXPECT_TRUE(run.session().slot(slot, copy).equal(run.session().slot(slot, p))) << slot << " of " << p.name;
      EXPECT_GT(run.session().slot(slot, p).abs().sum().item<double>(), 0);
    }
    ++compared;
  }
  EXPECT_GT(compared, 4);
  const auto config = nlohmann::json::parse(run.session().model().config_json);
  EXPECT_EQ(config["num_hidden_layers"], 2);
  run.trainer().step();
  EXPECT_FALSE(run.trainer().last_skipped());
}

TEST(Stacking, RefusesDepthsThatCannotBeHalvedAndModelsWithoutLayers) {
  EXPECT_THROW(TinyRun({.techniques = {{"stacking", {{"doublings", 2}}}}, .optimizer = {"adamw", {}}, .text = true}), UserError);
  EXPECT_THROW(TinyRun({.techniques = {{"stacking", {}}}, .optimizer = {"adamw", {}}, .text = false}), UserError);
}

}  // namespace
}  // namespace huajin
