// huajin transfer: tunes a narrow model, writes the wide one's recipe, trains it.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

class CliTransfer : public testing::Test {
 protected:
  Ran transfer(std::vector<std::string> more) {
    std::vector<std::string> all{"transfer", "--data", text_, "--runs-dir", runs_, "--base-width", "16", "--out", recipe_};
    for (const char* set : {"model.name=llama", "model.layers=1", "model.width=64", "model.heads=2", "batch.rows=4", "batch.length=16", "optimizer=adamw", "optimizer.learning_rate=0.01"})
      all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return run_huajin(all);
  }

  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", words(30000));
  std::string runs_ = folder_.path() + "/runs", recipe_ = folder_.path() + "/wide.toml";
};

TEST_F(CliTransfer, TriesALadderAndWritesTheBestRate) {
  const Ran ran = transfer({"--budget", "400step", "--share", "0.5", "--rates", "3", "--tune-only", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["trials"].size(), 3u);
  double best = 0, least = 1e300;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(json["trials"][i]["learning_rate"].get<double>(), 0.005 * std::pow(2.0, static_cast<double>(i)), 1e-12);
    if (json["trials"][i]["loss"].get<double>() < least) least = json["trials"][i]["loss"], best = json["trials"][i]["learning_rate"];
  }
  EXPECT_EQ(json["best"].get<double>(), best);
  const std::string recipe = read_text(recipe_);
  EXPECT_NE(recipe.find("[mup]"), std::string::npos);
  EXPECT_NE(recipe.find("base_width = 16"), std::string::npos);
  EXPECT_NE(recipe.find("limit = \"200step\""), std::string::npos) << recipe;  // half was for the trials
  EXPECT_NE(recipe.find("width = 64"), std::string::npos);
}

TEST_F(CliTransfer, TrainsTheWideModel) {
  const Ran ran = transfer({"--budget", "300step", "--share", "0.5", "--rates", "2", "--run", "wide", "--quiet"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json_value(read_text(runs_ + "/wide/result.json"), "steps"), "150");
  EXPECT_NE(read_text(runs_ + "/wide/recipe.toml").find("[mup]"), std::string::npos);
}

TEST_F(CliTransfer, CoordinateTable) {
  const Ran ran = transfer({"--coordinates", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  for (const char* title : {"with mup", "without mup"}) {
    EXPECT_EQ(json[title]["lm_head"].size(), 3u);  // 16, 32, 64
    EXPECT_GT(json[title]["lm_head"]["64"].get<double>(), 0);
  }
}

TEST_F(CliTransfer, SaysWhatIsWrong) {
  const auto refused = [&](std::vector<std::string> more, const char* what) {
    const Ran ran = transfer(std::move(more));
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_NE(ran.err.find(what), std::string::npos) << ran.err;
  };
  refused({"--base-width", "64"}, "must be less than model.width");
  refused({"--share", "1.5"}, "--share");
  refused({"--rates", "1"}, "--rates");
  refused({"--budget", "60step", "--rates", "7"}, "larger --share or --budget");
  refused({"--budget", "400step", "--set", "optimizer=muon"}, "no rule for the rates");
}

}  // namespace
}  // namespace huajin::test
