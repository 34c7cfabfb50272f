#include "huajin/core/registry.h"

#include <algorithm>

#include "huajin/core/errors.h"
#include "huajin/core/recipe.h"

namespace huajin {
namespace {

std::string names_of(const Registry& registry, PartOfRun part) {
  std::string names;
  for (auto& entry : registry.entries())
    if (entry.part == part) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

std::unique_ptr<Technique> make_one(const Registry& registry, const Choice& choice, PartOfRun part, const std::string& table) {
  const TechniqueEntry* entry = registry.find(choice.name);
  if (entry == nullptr || entry->part != part)
    throw UserError(table + (part == PartOfRun::kTechnique ? "" : ".name") + ": no such " + (part == PartOfRun::kOptimizer ? "optimizer" : part == PartOfRun::kSchedule ? "schedule" : "technique") +
                    " \"" + choice.name + "\"; there are " + names_of(registry, part));
  ChoiceReader reader(choice, table);
  auto technique = entry->make(reader);
  reader.finish();
  return technique;
}

// Order and conflicts are what entries say; nothing is reordered here: the message holds the corrected order.
void check_order(const Registry& registry, const std::vector<Choice>& techniques) {
  const auto position = [&](const std::string& name) {
    return std::find_if(techniques.begin(), techniques.end(), [&](const Choice& c) { return c.name == name; }) - techniques.begin();
  };
  for (size_t i = 0; i < techniques.size(); ++i) {
    if (static_cast<size_t>(position(techniques[i].name)) != i) throw UserError("techniques: \"" + techniques[i].name + "\" is listed twice; keep one");
    const TechniqueEntry* entry = registry.find(techniques[i].name);
    if (entry == nullptr) continue;
    for (auto& other : entry->conflicts)
      if (static_cast<size_t>(position(other)) < techniques.size())
        throw UserError("techniques: \"" + entry->name + "\" and \"" + other + "\" cannot be used together; drop one of them");
    for (auto& before : entry->after) {
      const size_t at = static_cast<size_t>(position(before));
      if (at >= techniques.size() || at < i) continue;
      std::string order;
      for (auto& c : techniques)
        if (c.name != entry->name) {
          order += (order.empty() ? "\"" : ", \"") + c.name + "\"";
          if (c.name == before) order += ", \"" + entry->name + "\"";
        }
      throw UserError("techniques: \"" + before + "\" must come before \"" + entry->name + "\"; write techniques = [" + order + "]");
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Technique>> make_techniques(const Registry& registry, const Recipe& recipe) {
  check_order(registry, recipe.techniques);
  std::vector<std::unique_ptr<Technique>> made;
  for (auto& choice : recipe.techniques) made.push_back(make_one(registry, choice, PartOfRun::kTechnique, choice.name));
  made.push_back(make_one(registry, recipe.optimizer, PartOfRun::kOptimizer, "optimizer"));
  made.push_back(make_one(registry, recipe.schedule, PartOfRun::kSchedule, "schedule"));
  return made;
}

}  // namespace huajin
