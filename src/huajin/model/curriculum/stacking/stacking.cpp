#include "huajin/model/curriculum/stacking/stacking.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

std::string numbered(const std::string& prefix, int64_t i) { return prefix + "." + std::to_string(i); }

}  // namespace

Stack find_stack(const Model& model) {
  for (size_t first = 0; first < model.blocks.size(); ++first) {
    const std::string& name = model.blocks[first].name;
    if (!name.ends_with(".0")) continue;
    Stack stack{name.substr(0, name.size() - 2), 1};
    while (first + static_cast<size_t>(stack.depth) < model.blocks.size() &&
           model.blocks[first + static_cast<size_t>(stack.depth)].name == numbered(stack.prefix, stack.depth))
      ++stack.depth;
    return stack;
  }
  return {};
}

void cut_stack(Model& model, const Stack& stack, int64_t depth) {
  std::erase_if(model.blocks, [&](const Model::Block& block) {
    for (int64_t i = depth; i < stack.depth; ++i)
      if (block.name == numbered(stack.prefix, i)) return true;
    return false;
  });
  if (model.config_json.empty()) return;
  auto config = nlohmann::json::parse(model.config_json);
  for (const char* key : {"num_hidden_layers", "n_layer"})
    if (config.contains(key)) config[key] = depth;
  model.config_json = config.dump(2);
}

std::string stacked_source(const std::string& name, const std::string& prefix, int64_t depth) {
  if (!name.starts_with(prefix + ".")) return name;
  size_t digits = 0;
  const std::string rest = name.substr(prefix.size() + 1);
  const int64_t layer = std::stoll(rest, &digits);
  return numbered(prefix, layer % depth) + rest.substr(digits);
}

int64_t doublings_due(const StackingConfig& config, double fraction) {
  int64_t due = 0;
  while (due < config.doublings && fraction >= config.until * static_cast<double>(due + 1) / static_cast<double>(config.doublings)) ++due;
  return due;
}

void Stacking::setup(Session& session) {
  session_ = &session;
  whole_ = find_stack(session.model());
  if (config_.doublings == 0) return;
  if (whole_.depth == 0) throw UserError("stacking: the model has no repeated layers to stack; drop stacking");
  const int64_t parts = int64_t{1} << config_.doublings;
  if (whole_.depth % parts != 0)
    throw UserError(fmt::format("stacking.doublings={}: {} layers cannot be halved so often; use a multiple of {} layers, or fewer doublings",
                                config_.doublings, whole_.depth, parts));
  if (!session.fresh_model()) throw UserError("stacking: this program gave no way to build the model anew; set RunSession::model_maker");
  depth_ = whole_.depth / parts;
  cut_stack(session.model(), whole_, depth_);
}

void Stacking::after_step(Step& step) {
  if (config_.doublings == 0) return;
  const int64_t wanted = whole_.depth >> (config_.doublings - doublings_due(config_, step.progress.fraction));
  while (depth_ < wanted) resize(2 * depth_);
}

void Stacking::resize(int64_t depth) {
  Rebuild change;
  change.model = [&] {
    auto model = session_->fresh_model();
    cut_stack(*model, whole_, depth);
    return model;
  };
  change.source = [this](std::string_view name) { return stacked_source(std::string(name), whole_.prefix, depth_); };
  session_->rebuild(change);
  depth_ = depth;
}

void Stacking::serialize(Archive& archive) {
  auto depth = static_cast<double>(depth_);
  archive.number("depth", depth);
  const auto wanted = static_cast<int64_t>(depth);
  if (wanted == depth_) return;
  if (wanted < 1 || wanted > whole_.depth) throw DamagedError(fmt::format("checkpoint: stacking/depth={}, must be 1 to {}", wanted, whole_.depth));
  resize(wanted);
}

}  // namespace huajin
