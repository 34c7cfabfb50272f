// huajin explain NAME: the keys with their ranges, from the fields that recipes are read with, and the card.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/cards.h"
#include "app/commands.h"
#include "huajin/zoo/zoo.h"
#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/core/recipe.h"
#include "huajin/core/registry.h"
#include "huajin/core/toml_text.h"
#include "huajin/io/json.h"

namespace huajin {
namespace {

struct Key {
  std::string name, value, allowed, help;
};
class KeyList : public Fields {
 public:
  std::vector<Key> keys;
  void number(std::string_view name, double& value, Range range, std::string_view help) override {
    add(name, number_text(value), range_text(range, "number"), help);
  }
  void integer(std::string_view name, int64_t& value, Range range, std::string_view help) override {
    add(name, std::to_string(value), range_text(range, "whole number"), help);
  }
  void flag(std::string_view name, bool& value, std::string_view help) override { add(name, value ? "true" : "false", "true | false", help); }
  void text(std::string_view name, std::string& value, std::vector<std::string_view> choices, std::string_view help) override {
    std::string allowed;
    for (auto choice : choices) allowed += (allowed.empty() ? "" : " | ") + std::string(choice);
    add(name, toml_quoted(value), allowed.empty() ? "text" : allowed, help);
  }

 private:
  static std::string range_text(Range range, const char* kind) {
    std::string text = kind;
    if (std::isfinite(range.least)) text += fmt::format(" {} {}", range.open ? ">" : ">=", range.least);
    if (std::isfinite(range.most)) text += fmt::format("{} {} {}", std::isfinite(range.least) ? "," : "", range.open_most ? "<" : "<=", range.most);
    return text;
  }
  void add(std::string_view name, std::string value, std::string allowed, std::string_view help) {
    keys.push_back({std::string(name), std::move(value), std::move(allowed), std::string(help)});
  }
};

struct Explained {
  std::string title, card, table;
  std::vector<Key> keys;
};

Explained explain(const std::string& name) {
  KeyList list;
  if (const TechniqueEntry* entry = catalog().find(name)) {
    entry->describe(list);
    const std::string table = entry->part == PartOfRun::kOptimizer ? "optimizer" : entry->part == PartOfRun::kSchedule ? "schedule" : entry->name;
    return {fmt::format("{} ({}): {}", entry->name, entry->box, entry->what), card_of(name), table, list.keys};
  }
  for (auto& entry : zoo())
    if (entry.name == name) {
      entry.describe(list);
      return {fmt::format("{} (model): {}", entry.name, entry.what), card_of(name), "model", list.keys};
    }
  std::vector<std::string> names;
  for (auto& [table, describe] : recipe_tables()) {
    if (table == name) {
      describe(list);
      return {fmt::format("[{}]: a table of every recipe{}", table, table == "run" ? "; its keys stand at the top of the file" : ""), "", table,
              list.keys};
    }
    names.push_back(table);
  }
  for (auto& entry : catalog().entries()) names.push_back(entry.name);
  for (auto& entry : zoo()) names.push_back(entry.name);
  const std::string near = nearest_name(name, names);
  throw UserError("huajin explain " + name + ": no such technique, model or table; " +
                  (near.empty() ? "huajin list shows what there is" : "did you mean \"" + near + "\"?"));
}

}  // namespace

int explain_command(const CommandLine& line) {
  const Explained found = explain(line.subjects.front());
  if (line.json) {
    Json keys = Json::array();
    for (auto& key : found.keys) keys.push_back({{"key", key.name}, {"default", key.value}, {"allowed", key.allowed}, {"help", key.help}});
    fmt::print("{}\n", json_text(Json{{"title", found.title}, {"table", found.table}, {"keys", keys}, {"card", found.card}}));
    return kExitOk;
  }
  fmt::print("{}\n\n", found.title);
  const std::string prefix = found.table == "run" ? "" : found.table + ".";
  for (auto& key : found.keys) fmt::print("  --set {}{}={}\n      {} ({})\n", prefix, key.name, key.value, key.help, key.allowed);
  if (found.keys.empty()) fmt::print("  It takes no keys.\n");
  if (!found.card.empty()) fmt::print("\n{}\n", found.card);
  return kExitOk;
}

}  // namespace huajin
