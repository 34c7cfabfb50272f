// One row a technique: what tests/conformance/conformance_test.cpp needs to know to try it. A technique of the catalog without a row fails.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "huajin/core/registry.h"
#include "tiny.h"

namespace huajin {

enum class Data { kBoth, kText, kVectors };

struct Row {
  std::string name;
  nlohmann::json on;   // options that make it act within twelve steps of the tiny run
  nlohmann::json off;  // options with which it does nothing; null: it cannot be off (a run has exactly one optimizer), and says why in `off_reason`
  Data data = Data::kBoth;
  std::string off_reason{};
};

const std::vector<Row>& conformance_table();
const Row& row_of(const std::string& name);  // throws if there is none
// Which of the two tiny runs it can be tried in.
std::vector<bool> text_or_not(const Row& row);
// The options of a run with this entry acting (or off), and with nothing.
TinyOptions with(const Row& row, const nlohmann::json& options, bool text);
TinyOptions without(bool text);

}  // namespace huajin
