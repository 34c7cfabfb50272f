// Help, lists and mistakes on the command line: at once, and in one line.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

TEST(CliHelp, EveryCommandAnswersWithinAThirdOfASecond) {
  for (auto* command :
       {"", "train", "resume", "eval", "bench", "generate", "plan", "check", "verify", "compare", "average", "transfer", "list", "explain", "data", "doctor"}) {
    double fastest = 10;
    for (int i = 0; i < 3 && fastest > 0.3; ++i) {  // a busy machine may hold one up
      const Ran ran = *command == 0 ? run_huajin({"--help"}) : run_huajin({command, "--help"});
      EXPECT_EQ(ran.code, 0) << command;
      EXPECT_EQ(ran.err, "") << command;
      EXPECT_GT(ran.out.size(), 100u) << command;
      fastest = std::min(fastest, ran.seconds);
    }
    EXPECT_LT(fastest, 0.3) << command;
  }
}

TEST(CliHelp, MistakesAreNamedWithTheNearest) {
  struct Mistake {
    std::vector<std::string> arguments;
    const char* part;
  };
  const Mistake mistakes[] = {
      {{"trian"}, "did you mean \"train\""},
      {{"frobnicate"}, "there are train, resume"},
      {{"train", "--bugdet", "3s"}, "did you mean --budget"},
      {{"train", "--seed", "one"}, "must be a whole number"},
      {{"train", "extra"}, "one argument too many"},
      {{"train", "--data"}, "--data"},
      {{"train", "--device", "tpu"}, "auto, cpu or cuda"},
      {{"train", "--threads", "-1"}, "--threads"},
      {{"train", "--threads", "100000"}, "at most 4096"},
      {{"train", "--seed", "-5"}, "at least 0"},
      {{"eval"}, "RUN"},
      {{"compare", "one"}, "RUN"},
      {{"average", "one"}, "--out"},
      {{"generate", "--temperature", "-1"}, "--temperature"},
      {{"generate", "--top-p", "0"}, "--top-p"},
      {{"generate", "--top-k", "-3"}, "--top-k"},
      {{"generate", "--tokens", "0"}, "--tokens"},
      {{"bench", "step", "gpt2-124m", "--batch", "0"}, "--batch"},
  };
  for (auto& mistake : mistakes) {
    const Ran ran = run_huajin(mistake.arguments);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_NE(ran.err.find(mistake.part), std::string::npos) << ran.err << "lacks " << mistake.part;
    EXPECT_LT(ran.seconds, 2);
  }
}

TEST(CliHelp, ListAndExplainKnowEverything) {
  const Ran list = run_huajin({"list"});
  EXPECT_EQ(list.code, 0) << list.err;
  for (auto* name : {"adamw", "muon", "linear", "sam", "ema", "llama", "gpt2-124m", "small_cnn"})
    EXPECT_NE(list.out.find(name), std::string::npos) << name;
  const Ran sam = run_huajin({"explain", "sam"});
  EXPECT_EQ(sam.code, 0) << sam.err;
  EXPECT_NE(sam.out.find("--set sam.rho="), std::string::npos) << sam.out;
  EXPECT_NE(sam.out.find("Reference"), std::string::npos) << "the card is part of it";
  const Ran batch = run_huajin({"explain", "batch"});
  EXPECT_NE(batch.out.find("--set batch.rows=8"), std::string::npos) << batch.out;
  const Ran wrong = run_huajin({"explain", "samm"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("did you mean \"sam\""), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace huajin::test
