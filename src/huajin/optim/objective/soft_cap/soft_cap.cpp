#include "huajin/optim/objective/soft_cap/soft_cap.h"

#include <ATen/TensorOperators.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "huajin/core/model.h"

namespace huajin {
namespace {

// The head in its place, under its own names.
struct CappedHead : Layer {
  CappedHead(std::unique_ptr<Layer> h, double c) : head(this, "", std::move(h)), cap(c) {}
  Tensor forward(Forward& f, const Tensor& x) const override { return soft_capped(head(f, x), cap); }
  double extra_flops(int64_t length) const override { return head.layer->extra_flops(length); }
  Part<> head;
  double cap;
};

}  // namespace

Tensor soft_capped(const Tensor& logits, double cap) {
  const Tensor wide = logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  return (wide / cap).tanh() * cap;
}

void SoftCap::setup(Session& session) {
  if (config_.cap == 0) return;
  Model& model = session.model();
  model.blocks.back().layer = std::make_unique<CappedHead>(std::move(model.blocks.back().layer), config_.cap);
  if (model.config_json.empty()) return;
  auto config = nlohmann::json::parse(model.config_json);
  config["final_logit_softcapping"] = config_.cap;
  model.config_json = config.dump(2);
}

}  // namespace huajin
