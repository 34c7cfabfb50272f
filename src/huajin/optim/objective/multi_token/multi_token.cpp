#include "huajin/optim/objective/multi_token/multi_token.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "huajin/core/errors.h"
#include "huajin/core/model.h"

namespace huajin {
namespace {

// The head in its place, and the matrices that only the loss asks for.
struct SeveralHeads : Layer {
  SeveralHeads(std::unique_ptr<Layer> h, int64_t further, int64_t width) : head(this, "", std::move(h)) {
    for (int64_t k = 1; k <= further; ++k) matrices.push_back(std::make_unique<Weight>(this, "multi_token." + std::to_string(k), std::vector<int64_t>{width, width}));
  }
  Tensor forward(Forward& f, const Tensor& x) const override { return head(f, x); }
  double extra_flops(int64_t length) const override { return head.layer->extra_flops(length); }
  Part<> head;
  std::vector<std::unique_ptr<Weight>> matrices;
};

// Width of what the head reads: its output matrix is [classes, width].
int64_t head_width(const Layer& layer) {
  for (const Weight* w : layer.weights)
    if (w->options.role == Role::kHead && w->shape.size() == 2) return w->shape[1];
  for (const PartBase* part : layer.parts)
    if (const int64_t width = head_width(*part->layer); width > 0) return width;
  return 0;
}

}  // namespace

Tensor multi_token_hidden(const Tensor& hidden, const Tensor& w) { return hidden + at::silu(at::linear(hidden, w)); }

Tensor multi_token_sum(const Logits& logits, const Examples& in, int64_t ahead) {
  const int64_t length = in.targets.size(1);
  const auto later = [&](const Tensor& t) { return t.slice(1, ahead, length); };
  Tensor items = logits.cross_entropy(later(in.targets));
  if (in.mask.defined()) items = items * later(in.mask).to(items.scalar_type());
  if (const Tensor& weight = in.index.weight; weight.defined())
    items = items * (weight.dim() > 1 ? later(weight) : weight.unsqueeze(1)).to(items.options());
  return items.sum();
}

void MultiToken::setup(Session& session) {
  weights_.clear();
  if (config_.tokens == 1) return;
  if (session.classifies()) throw UserError("multi_token: works on text, this data has one label a row; drop the technique");
  Model::Block& last = session.model().blocks.back();
  const int64_t width = head_width(*last.layer);
  if (width == 0) throw UserError("multi_token: the model's last block has no output matrix of two dimensions; drop the technique, or choose a model of `huajin list models`");
  auto heads = std::make_unique<SeveralHeads>(std::move(last.layer), config_.tokens - 1, width);
  for (auto& w : heads->matrices) weights_.push_back((last.name.empty() ? "" : last.name + ".") + w->name);
  last.layer = std::move(heads);
}

Loss MultiToken::loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const {
  Loss loss = next(out, in);
  const int64_t length = in.targets.size(1);
  for (size_t k = 0; k < weights_.size(); ++k) {
    const auto ahead = static_cast<int64_t>(k) + 1;
    if (ahead >= length) break;  // rows that short have no such token
    const Tensor hidden = multi_token_hidden(out.hidden.slice(1, 0, length - ahead), out.weight(weights_[k]));
    loss.terms.push_back({"token_" + std::to_string(ahead + 1), multi_token_sum(*out.head(hidden), in, ahead), Per::kWeight, config_.weight});
  }
  return loss;
}

}  // namespace huajin
