#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "huajin/core/checkpoint.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

// Masks and frequencies that earlier versions of transformers stored beside the weights; they follow from the config.
bool is_stored_constant(std::string_view name) {
  for (std::string_view end : {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq", ".position_ids", "num_batches_tracked"})
    if (name.ends_with(end)) return true;
  return false;
}

// "transformer." if the file calls "h.0.ln_1.weight" what the model calls "transformer.h.0.ln_1.weight"; "" if names agree.
std::string missing_prefix(const WeightTable& table, const Safetensors& weights) {
  std::map<std::string, int> found;
  for (const Parameter& p : table.parameters) {
    if (weights.find(p.name)) return "";
    if (const size_t dot = p.name.find('.'); dot != p.name.npos && weights.find(p.name.substr(dot + 1))) found[p.name.substr(0, dot + 1)]++;
  }
  const auto most = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == found.end() ? "" : most->first;
}

// What does not fit, for one line: the first of it, and how much there is.
struct Mismatch {
  std::string first;
  size_t missing = 0, shaped = 0, untied = 0, unexpected = 0;
  void add(size_t& kind, const std::string& what) {
    if (first.empty()) first = what;
    ++kind;
  }
  std::string text(size_t weights) const {
    std::string counts;
    for (auto& [count, what] : {std::pair{missing, "missing"}, {shaped, "of another shape"}, {untied, "not tied"}, {unexpected, "too many"}})
      if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, what);
    return fmt::format("{} (of {} weights: {})", first, weights, counts);
  }
};

std::string sizes_text(at::IntArrayRef shape) {
  std::string text;
  for (int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace

int64_t load_weights(RunSession& session, const Safetensors& weights) {
  at::NoGradGuard off;
  const std::string from = weights.files().empty() ? "weights" : weights.files().front();
  const std::string prefix = missing_prefix(session.table(), weights);
  Mismatch wrong;
  std::vector<std::pair<Parameter*, const StoredTensor*>> copies;
  std::set<const StoredTensor*> taken;
  const auto find = [&](const std::string& name) { return weights.find(name.starts_with(prefix) ? name.substr(prefix.size()) : name); };
  for (Parameter& p : session.table().parameters) {
    const StoredTensor* stored = find(p.name);
    if (!stored)
      wrong.add(wrong.missing, "missing " + p.name);
    else if (at::IntArrayRef(stored->shape) != at::IntArrayRef(p.shape))
      wrong.add(wrong.shaped, fmt::format("{} is {}, {} is needed", p.name, sizes_text(stored->shape), sizes_text(p.shape)));
    else
      copies.emplace_back(&p, stored);
    taken.insert(stored);
  }
  for (const auto& [name, to] : session.model().ties()) {
    const StoredTensor *again = find(name), *first = find(to);
    if (!again || !first) continue;
    taken.insert(again);
    if (again->dtype != first->dtype || as_text(again->data) != as_text(first->data))
      wrong.add(wrong.untied, fmt::format("{} differs from {}, to which this model ties it", name, to));
  }
  for (const StoredTensor& stored : weights.tensors())
    if (!taken.count(&stored) && !is_stored_constant(stored.name)) wrong.add(wrong.unexpected, "unexpected " + stored.name);
  if (!wrong.first.empty())
    throw UserError(fmt::format("{}: holds the weights of another model: {}; give the model's own settings ([model] in the recipe), or another folder", from,
                                wrong.text(session.table().parameters.size())));
  for (auto& [p, stored] : copies) p->value.copy_(to_tensor(*stored, from));
  for (Slot& slot : session.slots())
    for (const Parameter* p : session.parameters()) {
      Tensor& tensor = slot.tensors.at(static_cast<size_t>(p->index));
      if (tensor.defined()) tensor = slot.kind == SlotKind::kValue ? p->value.clone() : Tensor();
    }
  session.gradients_changed();
  session.execution().rebuilt();
  return static_cast<int64_t>(copies.size());
}

}  // namespace huajin
