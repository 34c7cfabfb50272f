#include "huajin/model/initialization/mup/mup.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/core/session.h"
#include "huajin/model/initialization/fans.h"

namespace huajin {
namespace {

using MupNames = std::vector<std::string_view>;
const MupNames kMupAdam{"adamw", "adam", "nadamw", "radam", "adan", "rmsprop", "adagrad", "lion"};

double ratio(const std::vector<int64_t>& wide, const std::vector<int64_t>& base, size_t from, size_t to) {
  double product = 1;
  for (size_t i = from; i < to; ++i) product *= static_cast<double>(wide[i]) / static_cast<double>(base[i]);
  return product;
}

struct Widths {
  double in = 1, out = 1;  // ratios of fan-in and fan-out
};

Widths widths_of(const Weight& wide, const Weight& base, bool transposed) {
  const auto& w = wide.shape;
  const auto& b = base.shape;
  if (wide.options.role == Role::kNorm || wide.options.role == Role::kBias || w.size() < 2) return {1, ratio(w, b, 0, w.size())};
  if (transposed) return {ratio(w, b, 0, 1), ratio(w, b, 1, 2)};
  return {ratio(w, b, 1, w.size()), ratio(w, b, 0, 1)};
}

// Tables 3 and 8 of the paper.
void table_scale(const Widths& m, MupRule rule, double& start, double& rate) {
  const bool output = m.in != 1 && m.out == 1;
  start = m.in == 1 ? 1 : output ? 1 / m.in : 1 / std::sqrt(m.in);
  rate = rule == MupRule::kAdam ? 1 / m.in : m.out / m.in;
}

// Numbers of an attention head, by the model's config; 0 if it says nothing.
double head_size(const Model& model) {
  if (model.config_json.empty()) return 0;
  const auto json = nlohmann::json::parse(model.config_json);
  if (json.contains("head_dim")) return json["head_dim"].get<double>();
  for (const auto& [width, heads] : {std::pair{"n_embd", "n_head"}, std::pair{"hidden_size", "num_attention_heads"}})
    if (json.contains(width) && json.contains(heads)) return json[width].get<double>() / json[heads].get<double>();
  return 0;
}

bool has(const std::string& name, std::string_view part) { return name.find(part) != name.npos; }

// Where the scores' multiplier goes, in how many parts the weight is fused: query first. 0: not a query.
int query_parts(const std::string& name, const Weight& weight, bool query_norm) {
  if (query_norm) return has(name, ".q_norm.") ? 1 : 0;
  if (has(name, ".c_attn.") && weight.options.parts == 3) return 3;
  return has(name, ".q_proj.") || has(name, ".attention.query.") ? 1 : 0;
}

void multiply_part(std::vector<double>& numbers, int parts, double by) {
  if (static_cast<int>(numbers.size()) != parts) numbers.assign(static_cast<size_t>(parts), numbers.front());
  numbers.front() *= by;
}

using Table = std::vector<Model::Entry>;

void fold_scores(const Table& table, double heads, MupRule rule, std::map<std::string, WidthScale>& scales) {
  const bool query_norm = std::any_of(table.begin(), table.end(), [](auto& entry) { return has(entry.name, ".q_norm."); });
  for (auto& entry : table) {
    const int parts = query_parts(entry.name, *entry.weight, query_norm);
    if (parts == 0) continue;
    if (!(heads > 0)) throw UserError("mup: the model's config does not say how large an attention head is; muP has to scale its scores");
    if (heads == 1) continue;
    WidthScale& scale = scales[entry.name];
    scale.dim = static_cast<int>(entry.weight->shape.size()) - 1;
    multiply_part(scale.start, parts, 1 / std::sqrt(heads));
    multiply_part(scale.rate, parts, rule == MupRule::kAdam ? 1 / std::sqrt(heads) : 1 / heads);
  }
}

// A head that multiplies with the embedding's table can't have a start of its own: the norm before it carries the factor.
void fold_tied_head(const Table& table, int head, double in, MupRule rule, std::map<std::string, WidthScale>& scales) {
  bool found = false;
  for (auto& entry : table) {
    const Role role = entry.weight->options.role;
    if (entry.blocks != std::vector<int>{head - 1}) continue;
    if (role != Role::kNorm && role != Role::kBias)
      throw UserError("mup: the head is tied to the embedding and no norm stands before it; untie it (model.tied = false)");
    found = true;
    WidthScale& scale = scales[entry.name];
    for (double& start : scale.start) start /= in;
    for (double& rate : scale.rate) rate /= rule == MupRule::kAdam ? in : in * in;
  }
  if (!found) throw UserError("mup: the head is tied to the embedding and no norm stands before it; untie it (model.tied = false)");
}

void scale_parts(Tensor value, const std::vector<double>& by, int dim) {
  const int64_t part = value.size(dim) / static_cast<int64_t>(by.size());
  for (size_t i = 0; i < by.size(); ++i)
    if (by[i] != 1) value.narrow(dim, static_cast<int64_t>(i) * part, part).mul_(by[i]);
}

bool is_one(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == 1; });
}

}  // namespace

MupRule mup_rule(const std::vector<std::string_view>& techniques) {
  std::string known, given;
  for (auto name : kMupAdam) known += std::string(name) + ", ";
  for (auto name : techniques) {
    if (std::find(kMupAdam.begin(), kMupAdam.end(), name) != kMupAdam.end()) return MupRule::kAdam;
    if (name == "sgd") return MupRule::kSgd;
    if (name != "mup") given += (given.empty() ? "" : ", ") + std::string(name);
  }
  throw UserError("mup: has no rule for the rates of this recipe's optimizer (" + given + "); choose optimizer.name among " + known + "sgd, or drop mup");
}

double element_deviation(const Init& init, const std::vector<int64_t>& shape) {
  if (init.kind == Init::kNormal) return init.scale;
  if (init.kind == Init::kUniform) return init.scale / std::sqrt(3.0);
  if (init.kind != Init::kOrthogonal) return 0;
  double rest = 1;
  for (size_t i = 1; i < shape.size(); ++i) rest *= static_cast<double>(shape[i]);
  return init.scale / std::sqrt(std::max(static_cast<double>(shape[0]), rest));  // rows or columns of unit length
}

std::map<std::string, WidthScale> width_scales(Model& wide, Model& base, MupRule rule) {
  const Table table = wide.number(), base_table = base.number();
  const auto transposed = transposed_weights(wide), base_transposed = transposed_weights(base);
  std::map<std::string, const Weight*> of_base;
  for (auto& entry : base_table) of_base[entry.name] = entry.weight;
  const int head = static_cast<int>(wide.blocks.size()) - 1;
  std::map<std::string, WidthScale> scales;
  double tied = 1;
  for (auto& entry : table) {
    const Weight& weight = *entry.weight;
    if (!weight.options.trainable || weight.options.role == Role::kStatistic) continue;
    const auto at = of_base.find(entry.name);
    if (at == of_base.end() || at->second->shape.size() != weight.shape.size())
      throw UserError("mup: the model at mup.base_width has no weight " + entry.name + " of as many dimensions; only sizes may differ");
    const auto turned = transposed.find(&weight);
    const Widths m = widths_of(weight, *at->second, turned != transposed.end() && (turned->second || base_transposed.at(at->second)));
    WidthScale& scale = scales[entry.name];
    table_scale(m, rule, scale.start.front(), scale.rate.front());
    const double here = element_deviation(weight.options.init, weight.shape), there = element_deviation(at->second->options.init, at->second->shape);
    if (here > 0) scale.start.front() *= there / here;
    if (weight.options.role == Role::kEmbedding && std::find(entry.blocks.begin(), entry.blocks.end(), head) != entry.blocks.end()) tied = m.out;
  }
  if (tied != 1) fold_tied_head(table, head, tied, rule, scales);
  fold_scores(table, head_size(wide) / std::max(head_size(base), 1e-300), rule, scales);
  return scales;
}

void Mup::setup(Session& session) {
  if (config_.base_width == 0) return;
  auto* run = dynamic_cast<RunSession*>(&session);
  if (run == nullptr || !run->model_of_width) throw UserError("mup: this program gave no way to build the model at another width; set RunSession::model_of_width");
  std::vector<std::string_view> techniques;
  for (auto& technique : run->techniques()) techniques.push_back(technique->name());
  const auto base = run->model_of_width(config_.base_width, config_.base_heads), wide = session.fresh_model();
  if (!wide) throw UserError("mup: this program gave no way to build the model anew; set RunSession::model_maker");
  scales_ = width_scales(*wide, *base, mup_rule(techniques));
}

void Mup::start(Session& session) {
  at::NoGradGuard off;
  for (Parameter* p : session.parameters()) {
    const auto at = scales_.find(p->name);
    if (at == scales_.end() || is_one(at->second.start)) continue;
    scale_parts(p->value, at->second.start, at->second.dim);
    session.each_slot(*p, [&](SlotKind kind, Tensor& slot) {
      if (kind == SlotKind::kValue) slot.copy_(p->value);  // it began as a copy of the weight before it was scaled
    });
  }
}

void Mup::update(Step& step, FunctionRef<void()> next) {
  at::NoGradGuard off;
  struct Slowed {
    Parameter* p;
    Tensor before;
    const WidthScale* scale;
  };
  std::vector<Slowed> slowed;
  for (Parameter* p : step.session.parameters())
    if (const auto at = scales_.find(p->name); at != scales_.end() && !is_one(at->second.rate)) slowed.push_back({p, p->value.clone(), &at->second});
  next();
  for (auto& [p, before, scale] : slowed) {
    const int64_t part = p->value.size(scale->dim) / static_cast<int64_t>(scale->rate.size());
    for (size_t i = 0; i < scale->rate.size(); ++i) {
      const int64_t from = static_cast<int64_t>(i) * part;
      if (scale->rate[i] != 1) p->value.narrow(scale->dim, from, part).lerp_(before.narrow(scale->dim, from, part), 1 - scale->rate[i]);
    }
  }
}

}  // namespace huajin
