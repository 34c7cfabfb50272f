#include "huajin/core/model.h"

#include <algorithm>
#include <map>
#include <set>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

std::string join(const std::string& path, const std::string& name) {
  if (path.empty()) return name;
  return name.empty() ? path : path + "." + name;
}

bool matches(std::string_view pattern, std::string_view text) {  // '*': any characters
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    for (size_t skip = 0; skip <= text.size(); ++skip)
      if (matches(pattern.substr(1), text.substr(skip))) return true;
    return false;
  }
  return !text.empty() && text[0] == pattern[0] && matches(pattern.substr(1), text.substr(1));
}

void visit(Layer& layer, const std::string& path, const std::function<void(Layer&, const std::string&)>& see) {
  see(layer, path);
  for (PartBase* part : layer.parts) visit(*part->layer, join(path, part->name), see);
}

}  // namespace

Weight::Weight(Layer* owner, std::string n, std::vector<int64_t> s, WeightOptions o) : name(std::move(n)), shape(std::move(s)), options(std::move(o)) {
  owner->weights.push_back(this);
}

std::vector<Model::Entry> Model::number() {
  std::vector<Entry> entries;
  std::map<std::string, int> id_of;
  std::map<std::string, std::string> tied(ties_.begin(), ties_.end());
  std::set<std::string> seen;
  std::vector<std::pair<Weight*, std::pair<std::string, int>>> waiting;  // tied weights that come before their source
  for (int b = 0; b < static_cast<int>(blocks.size()); ++b) {
    visit(*blocks[b].layer, blocks[b].name, [&](Layer& layer, const std::string& path) {
      layer.number = static_cast<int>(hash_name(path) & 0x7fffffff);
      for (Weight* weight : layer.weights) {
        const std::string name = join(path, weight->name);
        if (!seen.insert(name).second) throw UserError("model: the weight " + name + " is declared twice; give its layer or part another name");
        if (auto to = tied.find(name); to != tied.end()) {
          waiting.push_back({weight, {to->second, b}});
          continue;
        }
        weight->id = static_cast<int>(entries.size());
        id_of[name] = weight->id;
        entries.push_back({name, weight, {b}});
      }
    });
  }
  for (auto& [weight, target] : waiting) {
    auto found = id_of.find(target.first);
    if (found == id_of.end()) throw UserError("model: a weight is tied to " + target.first + ", which the model does not have");
    Entry& entry = entries[found->second];
    if (entry.weight->shape != weight->shape) throw UserError("model: " + weight->name + " is tied to " + target.first + ", which has another shape");
    weight->id = found->second;
    if (std::find(entry.blocks.begin(), entry.blocks.end(), target.second) == entry.blocks.end()) entry.blocks.push_back(target.second);
  }
  return entries;
}

int Model::replace(std::string_view pattern, const std::function<std::unique_ptr<Layer>(std::unique_ptr<Layer>)>& surgery) {
  std::vector<PartBase*> found;
  for (auto& block : blocks)
    visit(*block.layer, block.name, [&](Layer& layer, const std::string& path) {
      for (PartBase* part : layer.parts)
        if (matches(pattern, join(path, part->name))) found.push_back(part);
    });
  int count = static_cast<int>(found.size());
  for (PartBase* part : found) part->layer = surgery(std::move(part->layer));
  for (auto& block : blocks)
    if (matches(pattern, block.name)) {
      block.layer = surgery(std::move(block.layer));
      ++count;
    }
  return count;
}

int Model::freeze(std::string_view pattern) {
  int count = 0;
  for (auto& block : blocks)
    visit(*block.layer, block.name, [&](Layer& layer, const std::string& path) {
      for (Weight* weight : layer.weights)
        if (matches(pattern, join(path, weight->name)) && weight->options.trainable) {
          weight->options.trainable = false;
          ++count;
        }
    });
  return count;
}

double Model::flops_per_row(int64_t length) const {
  double flops = 0;
  for (auto& block : blocks)
    visit(*block.layer, block.name, [&](Layer& layer, const std::string&) {
      const double extra = layer.extra_flops(length);
      if (extra != 0) flops += extra;
      for (Weight* weight : layer.weights) {
        const Role role = weight->options.role;  // tables are looked up, not multiplied with
        if (weight->shape.size() != 2 || (role != Role::kHidden && role != Role::kHead)) continue;
        flops += 2.0 * static_cast<double>(weight->shape[0]) * static_cast<double>(weight->shape[1]) * static_cast<double>(std::max<int64_t>(length, 1));
      }
    });
  return flops;
}

}  // namespace huajin
