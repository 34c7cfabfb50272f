// The list of what a recipe may name. catalog.cpp fills it; core knows no entry.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

enum class PartOfRun { kTechnique, kOptimizer, kSchedule };  // optimizers and schedules: one a run, chosen by [optimizer] name, [schedule] name

struct TechniqueEntry {
  std::string name;    // folder = class = key = recipe table
  std::string box;     // "optim/objective"
  std::string what;    // one line
  PartOfRun part;
  std::vector<std::string> after;      // if also in the recipe, these come before it
  std::vector<std::string> conflicts;  // never together
  std::function<void(Fields&)> describe;                                 // defaults
  std::function<std::unique_ptr<Technique>(Fields& reader)> make;        // reads its config through `reader`, then constructs
};

class Registry {
 public:
  // Class(Config) with Config::fields(Fields&).
  template <class Class, class Config>
  TechniqueEntry& add(std::string name, std::string box, std::string what, PartOfRun part = PartOfRun::kTechnique) {
    TechniqueEntry entry{std::move(name), std::move(box), std::move(what), part, {}, {}, {}, {}};
    entry.describe = [](Fields& f) {
      Config config;
      config.fields(f);
    };
    entry.make = [](Fields& reader) -> std::unique_ptr<Technique> {
      Config config;
      config.fields(reader);
      return std::make_unique<Class>(config);
    };
    entries_.push_back(std::move(entry));
    return entries_.back();
  }
  const TechniqueEntry* find(std::string_view name) const {
    for (auto& e : entries_)
      if (e.name == name) return &e;
    return nullptr;
  }
  const std::vector<TechniqueEntry>& entries() const { return entries_; }

 private:
  std::vector<TechniqueEntry> entries_;
};

struct Recipe;
// What the recipe asks for, in its order, then its optimizer and its schedule. UserError: unknown names and keys, order, conflicts.
std::vector<std::unique_ptr<Technique>> make_techniques(const Registry& registry, const Recipe& recipe);

// Every technique of this build: catalog.cpp.
const Registry& catalog();

}  // namespace huajin
