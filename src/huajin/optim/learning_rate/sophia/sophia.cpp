#include "huajin/optim/learning_rate/sophia/sophia.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>

#include <utility>

#include "huajin/core/rng.h"
#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {
namespace {

// A number for each item: a function of the row's own stream, so that any split into micro-batches draws the same labels.
Tensor numbers_of(const Examples& in, uint64_t key) {
  const Tensor rows = (in.index.noise.defined() ? in.index.noise : in.index.id).to(at::kCPU, at::kLong).contiguous();
  Tensor numbers = at::empty(in.targets.sizes(), at::TensorOptions(at::kDouble));
  double* to = numbers.mutable_data_ptr<double>();
  const int64_t width = rows.numel() > 0 ? numbers.numel() / rows.numel() : 0;
  for (int64_t row = 0; row < rows.numel(); ++row) {
    const uint64_t stream = mix(key, static_cast<uint64_t>(rows.const_data_ptr<int64_t>()[row]));
    for (int64_t i = 0; i < width; ++i) to[row * width + i] = uniform(stream, static_cast<uint64_t>(i));
  }
  return numbers.to(in.targets.device());
}

}  // namespace

void sophia_update(const ParameterLists& p, const SophiaConfig& c) {
  const auto one = [=, rate = p.rate, keep = 1 - p.rate * p.decay(c.weight_decay)](auto& w, auto g, auto& m, auto& h) {
    using T = decltype(g);
    m = T(c.beta1) * m + T(1 - c.beta1) * g;
    const T wanted = T(c.gamma) * h, ratio = m / (wanted > T(c.epsilon) ? wanted : T(c.epsilon));
    w = T(keep) * w - T(rate) * (ratio > 1 ? T(1) : ratio < -1 ? T(-1) : ratio);
  };
  if (each_element<2>(p, one)) return;
  update_mean(p.slots[0], p.g, c.beta1);
  const Tensors below = at::_foreach_mul(p.slots[1], c.gamma);
  at::_foreach_clamp_min_(below, c.epsilon);
  const Tensors ratio = at::_foreach_div(p.slots[0], below);
  at::_foreach_clamp_min_(ratio, -1);
  at::_foreach_clamp_max_(ratio, 1);
  shrink(p.w, p.rate * p.decay(c.weight_decay));
  at::_foreach_add_(p.w, ratio, -p.rate);
}

Tensor drawn_classes(const Tensor& probabilities, const Tensor& numbers) {
  const Tensor edges = probabilities.to(at::kDouble).cumsum(-1);
  // The last edge may be just below one: whatever lies beyond belongs to the last class.
  return (edges <= numbers.unsqueeze(-1)).sum(-1).clamp_max(probabilities.size(-1) - 1);
}

void Sophia::setup(Session& session) {
  set_list_optimizer(session, config_, {{"sophia.m", SlotKind::kGradient}, {"sophia.h", SlotKind::kSecondMoment}}, sophia_update);
}

Loss Sophia::loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const {
  if (!drawing_) return next(out, in);
  Examples drawn = in;
  const Tensor logits = out.logits->whole().detach();  // outside of the guard: what it makes is kept, and needed with its graph
  {
    at::NoGradGuard off;
    drawn.targets = drawn_classes(at::softmax(logits.to(at::kFloat), -1), numbers_of(in, key_)).to(in.targets.scalar_type());
  }
  drawn.partner_targets = Tensor();  // labels are the model's own: nothing is mixed or smoothed
  drawn.index.uniform_target = 0;
  Loss loss = next(out, drawn);
  loss.terms.erase(loss.terms.begin() + 1, loss.terms.end());  // the likelihood only
  return loss;
}

bool Sophia::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (pass.probe) return next(pass);
  estimates_.clear();  // of a step that was skipped
  if (!next(pass)) return false;
  if (step.progress.step % config_.every != 0) return true;
  Tensors kept;
  for (Parameter* p : step.session.parameters()) kept.push_back(std::exchange(p->grad, Tensor()));
  Pass probe = pass;
  probe.probe = true;
  key_ = mix(step.session.seed(), static_cast<uint64_t>(Purpose::kTechnique), hash_name("sophia"), static_cast<uint64_t>(step.progress.draw));
  drawing_ = true;
  const bool finite = next(probe);  // if it isn't, this step's estimate is left out
  drawing_ = false;
  at::NoGradGuard off;
  // The mean gradient g of B drawn labels: B g^2 is on average the diagonal of the Gauss-Newton matrix (algorithm 2).
  const auto items = static_cast<double>(step.batch.rows() * (step.session.classifies() ? 1 : step.batch.length));
  size_t i = 0;
  for (Parameter* p : step.session.parameters()) {
    if (finite) estimates_.push_back(gradient_or_zeros(*p).square().mul_(items));
    p->grad = kept[i++];
  }
  step.session.gradients_changed();
  return true;
}

void Sophia::update(Step& step, FunctionRef<void()> next) {
  if (!estimates_.empty()) {
    at::NoGradGuard off;
    Tensors h;
    for (Parameter* p : step.session.parameters()) h.push_back(step.session.slot("sophia.h", *p));
    at::_foreach_lerp_(h, estimates_, 1 - config_.beta2);
    estimates_.clear();
  }
  next();
}

}  // namespace huajin
