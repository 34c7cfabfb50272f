#include "huajin/core/recipe.h"

#include <gtest/gtest.h>

#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/core/toml_text.h"

namespace huajin {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}
void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (auto* part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks " << part;
}

struct SamLike {
  double rho = 0.05;
  int64_t every = 1;
  bool adaptive = false;
  std::string norm = "l2";
  void fields(Fields& f) {
    f.number("rho", rho, {.least = 0, .open = true}, "radius");
    f.integer("every", every, {.least = 1, .most = 100}, "steps");
    f.flag("adaptive", adaptive, "scale by weights");
    f.text("norm", norm, {"l2", "linf"}, "which norm");
  }
};
SamLike read_sam(const Choice& choice) {
  SamLike sam;
  ChoiceReader reader(choice, "sam");
  sam.fields(reader);
  reader.finish();
  return sam;
}

constexpr const char* kRecipe = R"(# two minutes
seed = 7
precision = "bf16"
techniques = ["ema", "sam"]
[sam]
rho = 0.1
adaptive = true
[data]
path = "a \"quoted\" file.txt"
[optimizer]
learning_rate = 1e-3
name = "muon"
[batch]
rows = 16
[clip]
norm = 1
)";

TEST(Recipe, ReadsEveryKindOfKey) {
  const Recipe r = Recipe::read(kRecipe, "r.toml");
  EXPECT_EQ(r.run.seed, 7);
  EXPECT_EQ(r.run.precision, "bf16");
  EXPECT_EQ(r.data.path, "a \"quoted\" file.txt");
  EXPECT_EQ(r.batch.rows, 16);
  EXPECT_EQ(r.batch.length, 128);  // default
  EXPECT_EQ(r.optimizer.name, "muon");
  EXPECT_EQ(r.optimizer.given.at("learning_rate"), "0.001");
  ASSERT_EQ(r.techniques.size(), 3u);  // the list first, then tables in order of the file
  EXPECT_EQ(r.techniques[0].name, "ema");
  EXPECT_EQ(r.techniques[1].name, "sam");
  EXPECT_EQ(r.techniques[2].name, "clip");
  const SamLike sam = read_sam(r.techniques[1]);
  EXPECT_EQ(sam.rho, 0.1);
  EXPECT_TRUE(sam.adaptive);
  EXPECT_EQ(sam.norm, "l2");
}

TEST(Recipe, ResolvedReadsBackAsItself) {
  Recipe r = Recipe::read(kRecipe, "r.toml");
  r.set("data.validation=/tmp/with space\tand tab.txt");
  r.set("layout.timeout_seconds=0.1");
  for (auto& technique : r.techniques)
    if (technique.name == "sam") complete(technique, [](Fields& f) { SamLike().fields(f); });
  const std::string text = r.resolved();
  const Recipe again = Recipe::read(text, "resolved.toml");
  EXPECT_EQ(again.resolved(), text);
  EXPECT_EQ(again.data.validation, "/tmp/with space\tand tab.txt");
  EXPECT_NE(text.find("every = 1"), std::string::npos) << "defaults of techniques are written out";
  EXPECT_EQ(read_sam(again.techniques[1]).rho, 0.1);
}

TEST(Recipe, NumbersKeepEveryBit) {
  for (const double value : {0.1, 1e-5, 3.0, 1.0 / 3, 3.4e38, 5e-324, 123456789.0}) {
    Recipe r;
    r.set("sam.rho=" + number_text(value));
    const Recipe again = Recipe::read(r.resolved(), "x");
    EXPECT_EQ(read_sam(again.techniques.at(0)).rho, value);
  }
}

TEST(Recipe, SetFromTheCommandLine) {
  Recipe r;
  r.set("optimizer=sgd");
  r.set("optimizer.learning_rate=0.5");
  r.set("precision=fp64");
  r.set("seed=12");
  r.set("budget.limit=10m");
  r.set("sam.rho=1");
  EXPECT_EQ(r.optimizer.name, "sgd");
  EXPECT_EQ(r.run.precision, "fp64");
  EXPECT_EQ(r.run.seed, 12);
  EXPECT_EQ(r.budget.limit, "10m");
  EXPECT_EQ(read_sam(r.techniques.at(0)).rho, 1.0);
  r.set("sam.norm=linf");
  EXPECT_EQ(read_sam(r.techniques.at(0)).norm, "linf");
  r.set("data.path=2024");  // a file may be called that
  EXPECT_EQ(r.data.path, "2024");
  r.set("sam=false");
  EXPECT_TRUE(r.techniques.empty());
  r.set("techniques=[\"ema\", \"sam\"]");
  EXPECT_EQ(r.techniques.size(), 2u);
  r.set("optimizer=adamw");  // another entry: keys of the old one are gone
  EXPECT_TRUE(r.optimizer.given.empty());
}

TEST(Recipe, ErrorsSayWhereWhatAllowedAndNearest) {
  const auto read = [](const char* text) { return message_of([&] { Recipe::read(text, "r.toml"); }); };
  expect_parts(read("seed = 1\nprecison = \"bf16\"\n"), {"r.toml:2", "precison", "did you mean \"precision\""});
  expect_parts(read("[batch]\nrosw = 3\n"), {"r.toml:2", "batch.rosw", "did you mean \"rows\""});
  expect_parts(read("[batch]\nrows = \"eight\"\n"), {"r.toml:2", "batch.rows", "eight", "whole number"});
  expect_parts(read("[batch]\nrows = 8.5\n"), {"r.toml:2", "8.5", "whole number"});
  expect_parts(read("[batch]\nrows = 0\n"), {"r.toml:2", "batch.rows = 0", "at least 1"});
  expect_parts(read("[batch]\nrows = [1]\n"), {"r.toml:2", "batch.rows", "must be a number"});
  expect_parts(read("[batch]\n[batch.rows]\nx = 1\n"), {"r.toml:2", "batch.rows", "must be a number"});
  expect_parts(read("precision = \"bf61\"\n"), {"r.toml:1", "bf61", "fp32 | fp64 | bf16 | fp16", "did you mean \"bf16\""});
  expect_parts(read("[bacth]\nrows = 1\n"), {"r.toml:1", "bacth", "did you mean \"batch\""});
  expect_parts(read("[data]\npath = 3\n"), {"r.toml:2", "data.path = 3", "in quotes"});
  expect_parts(read("[execution]\nrecompute = 1\n"), {"r.toml:2", "true or false"});
  expect_parts(read("seed = \n"), {"r.toml:1", "not TOML"});
  expect_parts(read("[data\n"), {"r.toml:1", "not TOML"});
  expect_parts(read("seed = 1\n[\n"), {"r.toml:2", "not TOML"});
  expect_parts(read("\"a\\nb\" = 1\n"), {"r.toml:1", "a?b", "no name"});
  expect_parts(read("[sam]\n\"a\\nb\" = 1\n"), {"r.toml:2", "a?b", "no name"});
  expect_parts(read("techniques = [\"a\\nb\"]\n"), {"r.toml:1", "a?b", "no name"});
  expect_parts(read("\xff\xfe\n"), {"r.toml:1", "not TOML"});
  expect_parts(read("seed = 1\nseed = 2\n"), {"r.toml:2", "not TOML"});
  expect_parts(read("techniques = \"sam\"\n"), {"r.toml:1", "list of names"});
  expect_parts(read("techniques = [1]\n"), {"r.toml:1", "names in quotes"});
  expect_parts(read("[layout]\ntimeout_seconds = inf\n"), {"r.toml:2", "finite"});
  expect_parts(read("[layout]\ntimeout_seconds = nan\n"), {"r.toml:2", "finite"});
  expect_parts(read("seed.x = 1\n"), {"r.toml:1", "seed", "not a table"});
  expect_parts(read("[techniques]\nx = 1\n"), {"r.toml:1", "techniques", "not a table"});
  expect_parts(read("seed = -1\n"), {"seed = -1", "at least 0"});
  expect_parts(message_of([] { Recipe::read(std::string(2 << 20, '#'), "big.toml"); }), {"big.toml", "at most"});
  const auto set = [](const char* text) {
    return message_of([&] {
      Recipe r;
      r.set(text);
    });
  };
  expect_parts(set("batch.rows"), {"--set", "key=value"});
  expect_parts(set("=3"), {"key=value"});
  expect_parts(set("batch.rows="), {"batch.rows", "no value"});
  expect_parts(set("batch.rows=x"), {"--set batch.rows", "\"x\"", "whole number"});
  expect_parts(set("optimzer.learning_rate=1"), {"--set", "optimzer", "did you mean \"optimizer\""});
  expect_parts(set("a.b.c=1"), {"one dot"});
  expect_parts(set("precision.x=1"), {"--set", "precision", "not a table"});
  expect_parts(set("ba\ntch=1"), {"--set", "ba?tch", "no name"});
  expect_parts(set("batch.ro\nws=1"), {"--set", "ro?ws", "no name"});
  expect_parts(set("seeed=1"), {"--set", "seeed", "did you mean \"seed\""});
  const auto sam = [](const char* text) {
    return message_of([&] {
      Recipe r;
      r.set(text);
      read_sam(r.techniques.at(0));
    });
  };
  expect_parts(sam("sam.rho=0"), {"--set sam.rho = 0", "greater than 0"});
  expect_parts(sam("sam.rho=1e300"), {"sam.rho", "1e+300", "at most 3.4e+38"});
  expect_parts(sam("sam.every=101"), {"sam.every = 101", "at least 1 and at most 100"});
  expect_parts(sam("sam.roh=0.1"), {"--set sam.roh", "[sam]", "did you mean \"rho\""});
  expect_parts(sam("sam.norm=l3"), {"sam.norm", "l2 | linf"});
  expect_parts(sam("sam.every=99999999999999999999999"), {"sam.every", "whole number"});
}

TEST(Recipe, WhatIsNotTomlIsOneLineInEveryBuild) {
  for (auto* bad : {"[", "[[", "[[data", "[data]\n[", "seed = [", "seed = [1,", "seed = {", "seed = {a = {", "seed = \"", "seed = \"\"\"\n", "seed", "seed =", "= 1", ".",
                    "a. = 1", "[data] x", "[data]]", "seed = 1 2", "\"", "a = '''", "seed = 1979-05-", "seed = 0x", "seed = 1e", "seed = \"\\u12\"", "[data.]", "[.data]",
                    "[\"\n\"]", "\xc6\xa2", "[\xc3\xa9]"})
    for (auto* end : {"", "\n", " ", "\n\n[data]\n", "#"})
      expect_parts(message_of([&] { Recipe::read(std::string("precision = \"fp32\"\n") + bad + end, "r.toml"); }), {"r.toml:", "not TOML"});
  std::string deep = "a";
  for (int i = 0; i < 500000; ++i) deep += ".a";  // each a table in the one before
  expect_parts(message_of([&] { Recipe::read(deep + " = 1\n", "r.toml"); }), {"r.toml", "500000 dots", "at most"});
}

TEST(Recipe, TomlTextRoundTripsAnyBytes) {
  std::string all;
  for (int c = 1; c < 128; ++c) all += static_cast<char>(c);
  all += "\xe4\xbd\xa0";
  EXPECT_EQ(toml_unquoted(toml_quoted(all)), all);
  EXPECT_EQ(Recipe::read("[data]\npath = " + toml_quoted(all) + "\n", "x").data.path, all);
}

TEST(Names, NearestIsNearAndFarIsNothing) {
  const std::vector<std::string> names{"learning_rate", "momentum", "weight_decay"};
  EXPECT_EQ(nearest_name("lerning_rate", names), "learning_rate");
  EXPECT_EQ(nearest_name("weightdecay", names), "weight_decay");
  EXPECT_EQ(nearest_name("decay", names), "weight_decay");
  EXPECT_EQ(nearest_name("zzzzzz", names), "");
  EXPECT_NE(suggestion("zzzzzz", names).find("momentum"), std::string::npos);
}

}  // namespace
}  // namespace huajin
