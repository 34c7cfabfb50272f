// huajin average: soups of runs from the command line, against means that the test makes itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "huajin/io/safetensors.h"
#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

std::vector<float> numbers_of(const Safetensors& weights, const std::string& name) {
  const StoredTensor& stored = *weights.find(name);
  std::vector<float> numbers(stored.data.size() / sizeof(float));
  std::memcpy(numbers.data(), stored.data.data(), stored.data.size());
  return numbers;
}

// Runs from one start that differ in their rate.
class CliAverage : public testing::Test {
 protected:
  void train(const std::string& name, std::vector<std::string> sets, const char* budget = "40step") {
    std::vector<std::string> all{"train", "--data", text_, "--runs-dir", runs_, "--budget", budget, "--run", name, "--quiet"};
    sets.insert(sets.begin(), {"model.layers=1", "model.width=32", "model.heads=2", "batch.rows=4", "batch.length=32"});
    for (auto& set : sets) all.insert(all.end(), {"--set", set});
    const Ran ran = run_huajin(all);
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  Ran average(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "average");
    arguments.insert(arguments.end(), {"--runs-dir", runs_});
    return run_huajin(arguments);
  }
  std::string model(const std::string& run) const { return json_value(read_text(runs_ + "/" + run + "/result.json"), "checkpoint") + "/model"; }
  double evaluated(const std::string& run) {
    const Ran ran = run_huajin({"eval", run, "--json", "--runs-dir", runs_});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return std::stod(json_value(ran.out, "val_loss"));
  }
  std::string path(const char* name) const { return folder_.path() + "/" + name; }

  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", words(30000));
  std::string runs_ = folder_.path() + "/runs";
};

TEST_F(CliAverage, UniformIsTheMeanOfEveryTensor) {
  train("a", {"optimizer.learning_rate=0.003"});
  train("b", {"optimizer.learning_rate=0.004"});
  const Ran ran = average({"a", "b", "--out", path("soup"), "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Safetensors a(model("a")), b(model("b")), soup(path("soup"));
  ASSERT_EQ(soup.tensors().size(), a.tensors().size());
  for (auto& tensor : soup.tensors()) {
    const auto x = numbers_of(a, tensor.name), y = numbers_of(b, tensor.name), mean = numbers_of(soup, tensor.name);
    for (size_t i = 0; i < mean.size(); ++i) ASSERT_EQ(mean[i], static_cast<float>((static_cast<double>(x[i]) + y[i]) / 2)) << tensor.name;
  }
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_NEAR(json["members"][1]["val_loss"], evaluated("b"), 1e-9);
  // It is a model to start from, and what was printed is its loss: a run that moves it by nothing evaluates to the same.
  train("still", {"schedule=constant", "optimizer=sgd", "optimizer.learning_rate=1e-30"}, "1step");
  const Ran from = run_huajin({"train", "--recipe", runs_ + "/still/recipe.toml", "--init-from", path("soup"), "--run", "from", "--runs-dir", runs_, "--quiet"});
  ASSERT_EQ(from.code, 0) << from.err;
  EXPECT_NEAR(json["val_loss"].get<double>(), evaluated("from"), 1e-6);
  // Folders of weights, without the runs.
  const Ran plain = average({model("a"), model("b"), "--out", path("plain")});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(read_text(path("plain") + "/config.json"), read_text(model("a") + "/config.json"));
  const Safetensors again(path("plain"));
  for (auto& tensor : soup.tensors()) EXPECT_EQ(numbers_of(again, tensor.name), numbers_of(soup, tensor.name)) << tensor.name;
}

TEST_F(CliAverage, GreedyIsNeverWorseThanTheBestRun) {
  train("a", {"optimizer.learning_rate=0.003"});
  train("b", {"optimizer.learning_rate=0.004"});
  train("stranger", {"optimizer.learning_rate=0.003", "run.seed=2"});  // another start: another basin
  const Ran uniform = average({"a", "b", "stranger", "--out", path("uniform"), "--json"}), greedy = average({"a", "b", "stranger", "--greedy", "--out", path("greedy"), "--json"});
  ASSERT_EQ(uniform.code, 0) << uniform.err;
  ASSERT_EQ(greedy.code, 0) << greedy.err;
  const auto all = nlohmann::json::parse(uniform.out), some = nlohmann::json::parse(greedy.out);
  const double best = std::min({evaluated("a"), evaluated("b"), evaluated("stranger")});
  EXPECT_LE(some["val_loss"].get<double>(), best + 1e-9);
  EXPECT_GT(all["val_loss"].get<double>(), best + 0.01);
  EXPECT_FALSE(some["members"][0]["chosen"].get<bool>() && some["members"][2]["chosen"].get<bool>());
  EXPECT_TRUE(all["members"][2]["chosen"].get<bool>());
}

TEST_F(CliAverage, OfOneRunIsWhatItsEvaluationsSee) {
  train("a", {"optimizer.learning_rate=0.01", "ema.half_life=0.2", "schedule=constant"});
  const Ran ran = average({"a", "--out", path("ema"), "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NEAR(std::stod(json_value(ran.out, "val_loss")), evaluated("a"), 1e-9);
  const Safetensors raw(model("a")), exported(path("ema"));
  int differ = 0;
  for (auto& tensor : raw.tensors()) differ += numbers_of(raw, tensor.name) != numbers_of(exported, tensor.name);
  EXPECT_GT(differ, 0);
}

TEST_F(CliAverage, RefusesModelsThatDifferAndLeavesNothing) {
  train("a", {}, "2step");
  train("wide", {"model.width=64"}, "2step");
  train("deep", {"model.layers=2"}, "2step");
  const Ran wide = average({"a", "wide", "--out", path("soup")}), deep = average({"a", "deep", "--out", path("soup")});
  for (auto& [ran, folder, part] : {std::tuple{wide, model("wide"), "x64"}, std::tuple{deep, model("deep"), "model.layers.1"}}) {
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_NE(ran.err.find(folder), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  }
  EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"runs", "text.txt"}));
}

}  // namespace
}  // namespace huajin::test
