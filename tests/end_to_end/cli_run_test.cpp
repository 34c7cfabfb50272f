// The life of a run from the command line: train, result, verify, eval, generate, compare, plan, resume.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <thread>

#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

class CliRun : public testing::Test {
 protected:
  std::vector<std::string> tiny(std::vector<std::string> more, const char* budget) const {
    std::vector<std::string> all{"train", "--data", text_, "--runs-dir", runs_, "--budget", budget, "--set", "model.layers=1"};
    for (auto* set : {"model.width=32", "model.heads=2", "batch.rows=4", "batch.length=32"}) all.insert(all.end(), {"--set", set});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> on(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--runs-dir", runs_});
    return arguments;
  }
  std::string result(const std::string& run, const char* key) const { return json_value(read_text(runs_ + "/" + run + "/result.json"), key); }
  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", words(30000));
  std::string runs_ = folder_.path() + "/runs";
};

TEST_F(CliRun, LeavesWhatItPromises) {
  const Ran ran = run_huajin(tiny({"--run", "a"}, "60step"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto files = names_in(runs_ + "/a");
  for (auto* name : {"recipe.toml", "log.jsonl", "result.json", "checkpoints"})
    EXPECT_NE(std::find(files.begin(), files.end(), name), files.end()) << name;
  for (auto* key : {"seconds_total", "seconds_training", "budget_seconds", "steps", "tokens", "val_loss", "val_bits_per_byte", "weights_hash",
                    "checkpoint", "peak_rss_mb", "recipe"})
    EXPECT_NE(result("a", key), "") << key;
  EXPECT_EQ(result("a", "steps"), "60");
  EXPECT_EQ(result("a", "tokens"), std::to_string(60 * 4 * 32));
  EXPECT_EQ(result("a", "budget_seconds"), "null");
  EXPECT_LE(std::abs(std::stod(result("a", "seconds_total")) - ran.seconds), 0.5);
  EXPECT_LT(std::stod(result("a", "val_bits_per_byte")), 4);
  EXPECT_TRUE(std::filesystem::exists(result("a", "checkpoint")));

  std::istringstream log(read_text(runs_ + "/a/log.jsonl"));
  int steps = 0;
  double first = 0, last = 0;
  for (std::string line; std::getline(log, line);) {
    ASSERT_NE(json_value(line, "step"), "") << line;
    for (auto* bad : {"nan", "NaN", "inf", "Infinity"}) EXPECT_EQ(line.find(bad), std::string::npos) << line;
    if (json_value(line, "loss").empty()) continue;
    last = std::stod(json_value(line, "loss"));
    if (++steps == 1) first = last;
  }
  EXPECT_EQ(steps, 60);
  EXPECT_LT(last, 0.8 * first);

  EXPECT_EQ(run_huajin(on({"verify", "a"})).code, 0);
  const Ran eval = run_huajin(on({"eval", "a", "--json"}));
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_NEAR(std::stod(json_value(eval.out, "val_bits_per_byte")), std::stod(result("a", "val_bits_per_byte")), 1e-9);
  EXPECT_EQ(json_value(eval.out, "weights_hash"), result("a", "weights_hash"));
}

TEST_F(CliRun, TheWrittenRecipeReproducesTheRun) {
  ASSERT_EQ(run_huajin(tiny({"--run", "a", "--seed", "5", "--quiet"}, "20step")).code, 0);
  const Ran again = run_huajin(on({"train", "--recipe", runs_ + "/a/recipe.toml", "--run", "b", "--quiet"}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(result("a", "weights_hash"), result("b", "weights_hash"));
  EXPECT_EQ(result("a", "recipe"), result("b", "recipe"));
  ASSERT_EQ(run_huajin(on({"train", "--recipe", runs_ + "/a/recipe.toml", "--run", "c", "--quiet", "--seed", "6"})).code, 0);
  EXPECT_NE(result("a", "weights_hash"), result("c", "weights_hash"));
  const Ran compared = run_huajin(on({"compare", "a", "c"}));
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_NE(compared.out.find("val_bits_per_byte"), std::string::npos);
  EXPECT_NE(compared.out.find("seed"), std::string::npos) << compared.out;
}

TEST_F(CliRun, SignalSavesAndResumeEndsAsIfNothingHappened) {
  ASSERT_EQ(run_huajin(tiny({"--run", "whole", "--quiet"}, "400step")).code, 0);
  HowToRun how;
  how.meanwhile = [&](pid_t child) {
    for (int i = 0; i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (read_text(runs_ + "/cut/log.jsonl").find("\"step\":20,") != std::string::npos) break;
    }
    kill(child, SIGTERM);
  };
  const Ran cut = run_huajin(tiny({"--run", "cut", "--quiet"}, "400step"), how);
  ASSERT_EQ(cut.code, 143) << cut.err;
  EXPECT_NE(cut.err.find("huajin resume cut"), std::string::npos) << cut.err;
  const Ran resumed = run_huajin(on({"resume", "cut", "--quiet"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(result("cut", "weights_hash"), result("whole", "weights_hash"));
  EXPECT_EQ(result("cut", "val_loss"), result("whole", "val_loss"));
}

TEST_F(CliRun, GenerateIsReproducibleAndLikeTheText) {
  ASSERT_EQ(run_huajin(tiny({"--run", "a", "--quiet"}, "300step")).code, 0);
  const auto write = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"generate", "a", "--prompt", "the ", "--tokens", "100"};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = run_huajin(on(all));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  const std::string one = write({"--seed", "3"});
  EXPECT_EQ(one.rfind("the ", 0), 0u) << one;
  EXPECT_GT(one.size(), 100u);
  EXPECT_EQ(one, write({"--seed", "3"}));
  EXPECT_NE(one, write({"--seed", "4"}));
  EXPECT_EQ(write({"--temperature", "0"}), write({"--temperature", "0", "--seed", "9"}));
  EXPECT_EQ(write({"--temperature", "0"}), write({"--top-k", "1", "--seed", "8"}));
}

TEST_F(CliRun, CheckLeavesNothingAndPlanPredicts) {
  auto check = tiny({}, "60s");
  check[0] = "check";
  const Ran checked = run_huajin(check);
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_NE(checked.out.find("good"), std::string::npos) << checked.out;
  EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"text.txt"});
  auto plan = tiny({"--json"}, "60s");
  plan[0] = "plan";
  const Ran planned = run_huajin(plan);
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_GT(std::stod(json_value(planned.out, "steps")), 100) << planned.out;
  EXPECT_GT(std::stod(json_value(planned.out, "flops_per_unit")), 6 * 8000) << planned.out;
  EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"text.txt"});
}

TEST_F(CliRun, DataIsInspectedAndTokenized) {
  const Ran inspected = run_huajin({"data", "inspect", text_, "--json"});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_EQ(json_value(inspected.out, "kind"), "text");
  const std::string out = folder_.path() + "/tokens.bin";
  const std::vector<std::string> tokenize{"data", "tokenize", text_, "--out", out, "--vocabulary", "300", "--json"};
  const Ran made = run_huajin(tokenize);
  ASSERT_EQ(made.code, 0) << made.err;
  const auto tokens = static_cast<size_t>(std::stoll(json_value(made.out, "tokens")));
  EXPECT_LT(tokens, 30000u);
  EXPECT_EQ(std::filesystem::file_size(out), 1024 + 2 * tokens);  // llm.c: 256 int32, then uint16
  const Ran again = run_huajin(tokenize);
  EXPECT_EQ(again.code, 2) << "nothing is overwritten";
}

TEST_F(CliRun, QuietIsQuietAndJsonIsJson) {
  const Ran quiet = run_huajin(tiny({"--run", "a", "--quiet", "--json"}, "5step"));
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(json_value(quiet.out, "steps"), "5") << quiet.out;
  const Ran loud = run_huajin(tiny({"--run", "b"}, "5step"));
  EXPECT_EQ(loud.err.find('\x1b'), std::string::npos) << "no colour where there is no terminal";
  EXPECT_EQ(loud.err.find('\r'), std::string::npos);
  EXPECT_NE(loud.err.find("loss"), std::string::npos) << loud.err;
}

}  // namespace
}  // namespace huajin::test
