#include "huajin/core/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/core/toml_text.h"

namespace huajin {
namespace {

// Longest recipe and key that are read; what is longer was not written by a person.
constexpr size_t kMostBytes = 1 << 20, kMostKey = 64;

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (auto& [name, describe] : recipe_tables()) names.push_back(name);
  for (auto* name : {"model", "optimizer", "schedule"}) names.emplace_back(name);
  return names;
}
bool is_choice(std::string_view table) { return table == "model" || table == "optimizer" || table == "schedule"; }
bool is_settings(std::string_view table) {
  for (auto& [name, describe] : recipe_tables())
    if (name == table) return true;
  return false;
}
std::vector<std::string> run_keys() { return field_names(recipe_tables().front().second); }

// A value in the one spelling of toml_text.h; "" if its type has none.
std::string value_text(const toml::node& node) {
  if (auto* text = node.as_string()) return toml_quoted(text->get());
  if (auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (auto* integer = node.as_integer()) return std::to_string(integer->get());
  if (auto* number = node.as_floating_point()) return number_text(number->get());
  return "";
}

struct Place {
  std::string file;  // or "--set"
  int line = 0;
  std::string text() const { return line > 0 ? fmt::format("{}:{}", file, line) : file; }
  std::string prefix(std::string_view key) const { return text() + (line > 0 ? ": " : " ") + std::string(key); }
};

template <class Settings>
void read_into(Settings& settings, const Choice& choice, const std::string& table) {
  ChoiceReader reader(choice, table);
  settings.fields(reader);
  reader.finish();
}

void read_settings(Recipe& recipe, const std::string& table, const Choice& choice) {
  if (table == "run") return read_into(recipe.run, choice, table);
  if (table == "data") return read_into(recipe.data, choice, table);
  if (table == "budget") return read_into(recipe.budget, choice, table);
  if (table == "batch") return read_into(recipe.batch, choice, table);
  if (table == "checkpoint") return read_into(recipe.checkpoint, choice, table);
  if (table == "evaluation") return read_into(recipe.evaluation, choice, table);
  if (table == "layout") return read_into(recipe.layout, choice, table);
  read_into(recipe.execution, choice, table);
}

// The choice that a table stands for: one of the three, or a technique, which is enabled by it.
Choice& choice_for(Recipe& recipe, const std::string& table, const Place& place) {
  if (table == "model") return recipe.model;
  if (table == "optimizer") return recipe.optimizer;
  if (table == "schedule") return recipe.schedule;
  for (auto& technique : recipe.techniques)
    if (technique.name == table) return technique;
  recipe.techniques.push_back({table, {}, {{"name", place.text()}}});
  return recipe.techniques.back();
}

void set_choice(Recipe& recipe, const std::string& table, const std::string& key, const std::string& value, const Place& place) {
  Choice& choice = choice_for(recipe, table, place);
  if (key == "name" && is_choice(table)) {
    const std::string name = is_quoted(value) ? toml_unquoted(value) : value;
    if (name.empty()) throw UserError(fmt::format("{} = {}: must be a name in quotes", place.prefix(table + ".name"), shortened(value)));
    if (name != choice.name) choice.given.clear(), choice.where.clear();  // keys of the entry that was named before
    choice.name = name;
    choice.where["name"] = place.text();
    return;
  }
  choice.given[key] = value;
  choice.where[key] = place.text();
}

// A misspelt table of the core's would pass for a technique: those are checked against the registry later, where these names are unknown.
void refuse_near_miss(const std::string& table, const Place& place) {
  const std::string near = nearest_name(table, table_names());
  const bool close = !near.empty() && table.size() >= 4 && std::abs(static_cast<int>(near.size()) - static_cast<int>(table.size())) <= 1 &&
                     near.front() == table.front();
  if (close && near != table) throw UserError(fmt::format("{}: no such table; did you mean \"{}\"?", place.prefix(table), near));
}

void read_list(Recipe& recipe, const toml::node& node, const Place& place) {
  const toml::array* list = node.as_array();
  if (list == nullptr) throw UserError(place.prefix("techniques") + ": must be a list of names, such as [\"ema\", \"sam\"]");
  std::vector<Choice> ordered;
  for (auto& item : *list) {
    if (!item.is_string()) throw UserError(place.prefix("techniques") + ": must be a list of names in quotes, such as [\"ema\", \"sam\"]");
    const std::string name = item.as_string()->get();
    Choice choice{name, {}, {{"name", place.text()}}};
    for (auto& old : recipe.techniques)
      if (old.name == name) choice = old;
    ordered.push_back(choice);
  }
  recipe.techniques = ordered;
}

// A key outside every table: one of [run]'s, the list of techniques, or the short form of a choice (optimizer = "sgd").
void set_top(Recipe& recipe, const std::string& key, const toml::node& node, const std::string& value, const Place& place) {
  if (key == "techniques") return read_list(recipe, node, place);
  if (is_choice(key)) return set_choice(recipe, key, "name", value, place);
  const auto keys = run_keys();
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) return read_settings(recipe, "run", {"run", {{key, value}}, {{key, place.text()}}});
  auto known = keys;
  known.emplace_back("techniques");
  for (auto& name : table_names()) known.push_back(name);
  throw UserError(fmt::format("{} = {}: no such key{}", place.prefix(key), shortened(value), suggestion(key, known)));
}

void set_in_table(Recipe& recipe, const std::string& table, const std::string& key, const std::string& value, const Place& place) {
  if (value.empty()) throw UserError(fmt::format("{}: must be a number, true, false or text in quotes", place.prefix(table + "." + key)));
  if (is_settings(table)) return read_settings(recipe, table, {table, {{key, value}}, {{key, place.text()}}});
  if (!is_choice(table)) refuse_near_miss(table, place);
  set_choice(recipe, table, key, value, place);
}

void read_table(Recipe& recipe, const std::string& name, const toml::table& table, const std::string& file) {
  const Place at{file, static_cast<int>(table.source().begin.line)};
  if (!is_settings(name) && !is_choice(name)) refuse_near_miss(name, at), choice_for(recipe, name, at);
  // [model] name first: it clears what another entry was given
  std::vector<std::pair<std::string, const toml::node*>> entries;
  for (auto&& [key, node] : table) entries.emplace_back(std::string(key.str()), &node);
  std::stable_partition(entries.begin(), entries.end(), [](auto& entry) { return entry.first == "name"; });
  for (auto& [key, node] : entries) set_in_table(recipe, name, key, value_text(*node), {file, static_cast<int>(node->source().begin.line)});
}

}  // namespace

Recipe Recipe::read(std::string_view text, std::string_view file_name) {
  const std::string file(file_name);
  if (text.size() > kMostBytes) throw UserError(fmt::format("{}: {} bytes are too many for a recipe; at most {}", file, text.size(), kMostBytes));
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    std::string what(parsed.error().description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw UserError(fmt::format("{}:{}: not TOML: {}", file, parsed.error().source().begin.line, what));
  }
  Recipe recipe;
  std::vector<std::pair<std::string, const toml::node*>> entries;
  for (auto&& [key, node] : parsed.table()) entries.emplace_back(std::string(key.str()), &node);
  std::stable_sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.second->source().begin.line < b.second->source().begin.line; });
  for (auto& [key, node] : entries) {
    const Place place{file, static_cast<int>(node->source().begin.line)};
    if (key.size() > kMostKey) throw UserError(fmt::format("{}: no key is so long: {}", place.text(), shortened(key)));
    if (const toml::table* table = node->as_table())
      read_table(recipe, key, *table, file);
    else
      set_top(recipe, key, *node, value_text(*node), place);
  }
  return recipe;
}

void Recipe::set(std::string_view key_equals_value) {
  const Place place{"--set", 0};
  const size_t equals = key_equals_value.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw UserError(fmt::format("--set {}: must be key=value, such as optimizer.learning_rate=0.001", shortened(key_equals_value)));
  const std::string key(key_equals_value.substr(0, equals)), raw(key_equals_value.substr(equals + 1));
  if (raw.empty()) throw UserError(fmt::format("--set {}: has no value; write {}=VALUE", shortened(key), shortened(key)));
  // What is no TOML value is text: --set data.path=/tmp/a.txt needs no quotes.
  const toml::parse_result parsed = raw.find('\n') == std::string::npos ? toml::parse("value = " + raw) : toml::parse("");
  const toml::node* node = parsed ? parsed.table().get("value") : nullptr;
  const toml::value<std::string> bare(raw);
  std::string text = node != nullptr ? value_text(*node) : toml_quoted(raw);
  if (node == nullptr || (text.empty() && !node->is_array())) node = &bare, text = toml_quoted(raw);
  const size_t dot = key.find('.');
  if (dot != std::string::npos) {
    if (key.find('.', dot + 1) != std::string::npos) throw UserError(fmt::format("--set {}: must be table.key=value with one dot", shortened(key)));
    return set_in_table(*this, key.substr(0, dot), key.substr(dot + 1), text, place);
  }
  if (text == "true" || text == "false") {  // --set sam=false
    const auto keys = run_keys();
    if (std::find(keys.begin(), keys.end(), key) == keys.end() && !is_choice(key) && !is_settings(key)) {
      refuse_near_miss(key, place);
      if (text == "true")
        choice_for(*this, key, place);
      else
        std::erase_if(techniques, [&](const Choice& c) { return c.name == key; });
      return;
    }
  }
  set_top(*this, key, *node, text, place);
}

namespace {

void write_choice(std::string& out, const Choice& choice, const std::string& table, bool named) {
  out += "\n[" + table + "]\n";
  if (named) out += "name = " + toml_quoted(choice.name) + "\n";
  for (auto& [key, value] : choice.given) out += key + " = " + value + "\n";
}

template <class Settings>
void write_settings(std::string& out, Settings settings, const std::string& table) {
  Choice all;
  complete(all, [&](Fields& f) { settings.fields(f); });
  if (table != "run") out += "\n[" + table + "]\n";
  for (auto& key : field_names([&](Fields& f) { settings.fields(f); })) out += key + " = " + all.given[key] + "\n";
}

}  // namespace

std::string Recipe::resolved() const {
  std::string out;
  write_settings(out, run, "run");
  std::string list;
  for (auto& technique : techniques) list += (list.empty() ? "" : ", ") + toml_quoted(technique.name);
  out += "techniques = [" + list + "]\n";
  write_settings(out, data, "data");
  write_settings(out, budget, "budget");
  write_settings(out, batch, "batch");
  write_settings(out, checkpoint, "checkpoint");
  write_settings(out, evaluation, "evaluation");
  write_settings(out, layout, "layout");
  write_settings(out, execution, "execution");
  write_choice(out, model, "model", true);
  write_choice(out, optimizer, "optimizer", true);
  write_choice(out, schedule, "schedule", true);
  for (auto& technique : techniques) write_choice(out, technique, technique.name, false);
  return out;
}

}  // namespace huajin
