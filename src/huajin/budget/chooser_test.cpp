#include "huajin/budget/chooser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "huajin/budget/planner.h"
#include "huajin/core/registry.h"
#include "huajin/zoo/zoo.h"

namespace huajin {
namespace {

const Machine kTwoCores{2, 150e9, 150e9, 16e9}, kThirtyTwoCores{32, 2400e9, 2400e9, 64e9};

Choosing chosen(const char* budget, const DataFacts& facts, const Machine& machine = kTwoCores) {
  Recipe start;
  start.budget.limit = budget;
  return choose(start, facts, parse_limits(budget, "test"), machine);
}
int64_t weights(const Choosing& c) {
  const int64_t width = std::stoll(c.recipe.model.given.at("width"));
  return std::stoll(c.recipe.model.given.at("layers")) * width * width;
}

TEST(Chooser, EveryChoiceIsARecipeThatThisBuildCanRun) {
  for (const char* budget : {"10s", "60s", "2m", "10m", "1h", "10h", "48h", "100step", "5epoch", "1e15flop", "20Mtok"})
    for (const DataFacts& facts :
         {DataFacts{false, false, 1.1e6, true, 65}, DataFacts{false, false, 500, true, 20}, DataFacts{false, false, 5e9, true, 5000},
          DataFacts{false, false, 1e6, false, 0}, DataFacts{true, true, 5e7, true, 0}}) {
      Choosing c = chosen(budget, facts);
      EXPECT_EQ(c.reasons.size(), 5u);
      const ZooEntry& model = find_model(c.recipe.model.name);
      EXPECT_EQ(model.images, facts.images);
      ChoiceReader reader(c.recipe.model, "model");
      model.describe(reader);
      EXPECT_NO_THROW(reader.finish());
      EXPECT_NO_THROW(make_techniques(catalog(), c.recipe));
      if (!facts.images) {
        EXPECT_EQ(std::stoll(c.recipe.model.given.at("width")) % (2 * std::stoll(c.recipe.model.given.at("heads"))), 0) << budget;
      }
      EXPECT_EQ(Recipe::read(c.recipe.resolved(), "x").resolved(), c.recipe.resolved());
    }
}

TEST(Chooser, MoreBudgetOrAFasterMachineMeansALargerModel) {
  const DataFacts text{false, false, 100e6, true, 90};
  EXPECT_LT(weights(chosen("10s", text)), weights(chosen("5m", text)));
  EXPECT_LT(weights(chosen("5m", text)), weights(chosen("2h", text)));
  EXPECT_LT(weights(chosen("60s", text)), weights(chosen("60s", text, kThirtyTwoCores)));
}

TEST(Chooser, SmallDataMeansShortRows) {
  const Choosing c = chosen("60s", DataFacts{false, false, 600, true, 30});
  EXPECT_LE(c.recipe.batch.length * 20, 640);
}

TEST(Chooser, LooksAtTheData) {
  const std::string folder = testing::TempDir() + "huajin_chooser";
  std::filesystem::create_directories(folder);
  const auto facts_of = [&](const std::string& content) {
    std::ofstream(folder + "/a.txt", std::ios::binary) << content;
    DataSettings data;
    data.path = folder + "/a.txt";
    return inspect_data(data);
  };
  EXPECT_EQ(facts_of("abcabc").distinct, 3);
  EXPECT_TRUE(facts_of("na\xc3\xafve \xe4\xbd\xa0").utf8);
  EXPECT_FALSE(facts_of("caf\xe9 ").utf8);
  EXPECT_FALSE(facts_of(std::string("a\0b", 3)).utf8);
  EXPECT_EQ(facts_of("12345").bytes, 5);
  DataSettings nowhere;
  nowhere.path = "/no/such/file";
  EXPECT_EQ(inspect_data(nowhere).bytes, 0);
  std::filesystem::remove_all(folder);
}

TEST(Planner, TheNearestLimitDecides) {
  const auto steps = [](const char* budget) { return steps_in_budget(parse_limits(budget, "test"), 0.1, 2, 3, 1024, 8, 1e9, 1e6); };
  EXPECT_DOUBLE_EQ(steps("25s"), 200);
  EXPECT_DOUBLE_EQ(steps("3s"), 0);
  EXPECT_DOUBLE_EQ(steps("25s, 100step"), 100);
  EXPECT_DOUBLE_EQ(steps("102400tok"), 100);
  EXPECT_DOUBLE_EQ(steps("80sample"), 10);
  EXPECT_DOUBLE_EQ(steps("2epoch"), 2e6 / 1024);
  EXPECT_DOUBLE_EQ(steps("5e9flop"), 5);
}

}  // namespace
}  // namespace huajin
