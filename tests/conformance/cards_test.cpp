// Every technique's card (README.md in its folder) has all its parts, and its table of hyper-parameters is the one that its fields() give.
// HUAJIN_WRITE_CARDS=1 writes that table into the card instead: tools/check_cards --write.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "huajin/core/registry.h"

namespace huajin {
namespace {

namespace fs = std::filesystem;
const char* const kSections[] = {
    "## What",      "## Why",   "## When and when not", "## Cost", "## Hyper-parameters", "## Works with, conflicts with",
    "## Reference", "## Hooks", "## Evidence"};
const std::string kBegin = "<!-- fields -->\n", kEnd = "<!-- end of fields -->\n";

class TableWriter : public Fields {
 public:
  std::string table = "| key | default | allowed | what |\n|---|---|---|---|\n";
  int rows = 0;
  void number(std::string_view name, double& value, Range range, std::string_view help) override {
    row(name, fmt::format("{:g}", value), allowed(range), help);
  }
  void integer(std::string_view name, int64_t& value, Range range, std::string_view help) override {
    row(name, std::to_string(value), "whole, " + allowed(range), help);
  }
  void flag(std::string_view name, bool& value, std::string_view help) override { row(name, value ? "true" : "false", "true, false", help); }
  void text(std::string_view name, std::string& value, std::vector<std::string_view> choices, std::string_view help) override {
    std::string all;
    for (auto choice : choices) all += (all.empty() ? "" : ", ") + std::string(choice);
    row(name, value, all.empty() ? "any text" : all, help);
  }

 private:
  static std::string allowed(Range range) {
    std::string result;
    if (std::isfinite(range.least)) result = fmt::format("{} {:g}", range.open ? ">" : "≥", range.least);
    if (std::isfinite(range.most)) result += fmt::format("{}{} {:g}", result.empty() ? "" : ", ", range.open_most ? "<" : "≤", range.most);
    return result.empty() ? "any" : result;
  }
  void row(std::string_view name, const std::string& value, const std::string& range, std::string_view help) {
    table += fmt::format("| {} | {} | {} | {} |\n", name, value, range, help);
    ++rows;
  }
};

std::string read_all(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

fs::path source_folder() { return fs::path(HUAJIN_SOURCE_DIR) / "src" / "huajin"; }

// Each section is there, in order, and says something.
void expect_sections(const std::string& card, const std::string& name) {
  size_t at = 0;
  for (const char* section : kSections) {
    const size_t found = card.find(std::string("\n") + section + "\n", at);
    ASSERT_NE(found, std::string::npos) << name << ": no \"" << section << "\" (or not in order)";
    at = found + 1;
    const size_t begin = card.find('\n', at) + 1, end = std::min(card.find("\n## ", begin), card.size());
    EXPECT_GT(end - begin, 20u) << name << ": \"" << section << "\" says nothing";
  }
  EXPECT_EQ(card.find("TO FILL IN"), std::string::npos) << name << ": a part still has the text of tools/new_technique";
}

std::string with_table(const std::string& card, const std::string& table) {
  const size_t begin = card.find(kBegin), end = card.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return card;
  return card.substr(0, begin + kBegin.size()) + table + card.substr(end);
}

TEST(Cards, AreCompleteAndTheirTablesAreTheFields) {
  for (auto& entry : catalog().entries()) {
    const fs::path path = source_folder() / entry.box / entry.name / "README.md";
    std::string card = read_all(path);
    ASSERT_FALSE(card.empty()) << path;
    TableWriter writer;
    entry.describe(writer);
    EXPECT_GT(writer.rows, 0);
    ASSERT_NE(card.find(kBegin), std::string::npos) << path << ": no line " << kBegin;
    const std::string wanted = with_table(card, writer.table);
    if (std::getenv("HUAJIN_WRITE_CARDS") != nullptr && wanted != card) {
      std::ofstream(path) << wanted;
      card = wanted;
    }
    EXPECT_EQ(card, wanted) << path << ": its table is not what fields() says; run tools/check_cards --write";
    expect_sections(card, entry.name);
    EXPECT_TRUE(card.starts_with("# ")) << path;
  }
}

// Parts of the engine and of the program that the survey counts as techniques have cards as well.
TEST(Cards, OfTheEngineAreComplete) {
  for (const char* folder : {"system/optimization/accumulation", "system/optimization/rematerialization", "system/optimization/mixed_precision",
                             "system/data/data_parallel", "optim/averaging/soup"}) {
    const std::string card = read_all(source_folder() / folder / "README.md");
    ASSERT_FALSE(card.empty()) << folder;
    expect_sections(card, folder);
  }
}

// A folder of a technique holds NAME.h, NAME.cpp, NAME_test.cpp and README.md; the header fits on a screen or two.
TEST(Cards, StandBesideTheOtherThreeFiles) {
  for (auto& entry : catalog().entries()) {
    const fs::path folder = source_folder() / entry.box / entry.name;
    for (const char* suffix : {".h", ".cpp", "_test.cpp"}) EXPECT_TRUE(fs::exists(folder / (entry.name + suffix))) << folder << suffix;
    const std::string header = read_all(folder / (entry.name + ".h"));
    EXPECT_LE(std::count(header.begin(), header.end(), '\n'), 80) << folder;
  }
}

}  // namespace
}  // namespace huajin
