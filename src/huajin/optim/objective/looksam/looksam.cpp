#include "huajin/optim/objective/looksam/looksam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace huajin {
namespace {

constexpr const char* kAcross = "looksam.across";

}  // namespace

void Looksam::setup(Session& session) { session.declare_slot(kAcross, SlotKind::kGradient); }

bool Looksam::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  across_.clear();  // of a step that was skipped
  if (config_.rho == 0) return next(pass);
  if (step.progress.step % config_.every == 0) return two_passes(step.session, pass, next);
  if (!next(pass)) return false;
  if (config_.alpha > 0) add_kept(step.session);
  return true;
}

bool Looksam::two_passes(Session& session, Pass pass, FunctionRef<bool(Pass)> next) {
  Pass probe = pass;
  probe.probe = true;
  if (!next(probe)) return false;
  const Directions g = gradients_of(session);
  const Tensor norm = session.norm();
  {
    const Climb there(session, g, norm, config_.rho);
    if (!next(pass)) return false;
  }
  if (config_.every == 1) return true;
  at::NoGradGuard off;
  const Directions sharp = gradients_of(session);
  const Tensor sharp_norm = session.norm();
  const Tensor share = sharp_norm * cosine(session, g, norm, sharp, sharp_norm) / (norm + 1e-12);
  for (size_t i = 0; i < g.size(); ++i) {
    Tensor across = sharp[i].defined() ? sharp[i].clone() : Tensor();
    if (g[i].defined()) across = across.defined() ? across.sub_(g[i] * share.to(g[i].scalar_type())) : g[i] * -share.to(g[i].scalar_type());
    across_.push_back(across);
  }
  return true;
}

void Looksam::add_kept(Session& session) {
  at::NoGradGuard off;
  Directions kept;
  for (Parameter* p : session.parameters()) kept.push_back(session.slot(kAcross, *p));
  const Tensor factor = config_.alpha * session.norm() / (norm_of(session, kept) + 1e-12);
  size_t i = 0;
  for (Parameter* p : session.parameters()) {
    const Tensor added = kept[i++] * factor.to(p->value.scalar_type());
    p->grad = p->grad.defined() ? p->grad.add_(added) : added;
  }
  session.gradients_changed();
}

void Looksam::update(Step& step, FunctionRef<void()> next) {
  size_t i = 0;
  if (!across_.empty())
    for (Parameter* p : step.session.parameters()) {
      const Tensor& across = across_[i++];
      Tensor& slot = step.session.slot(kAcross, *p);
      if (across.defined()) slot.copy_(across);
      else slot.zero_();
    }
  across_.clear();
  next();
}

}  // namespace huajin
