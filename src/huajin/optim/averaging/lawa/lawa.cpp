#include "huajin/optim/averaging/lawa/lawa.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace huajin {

void mean_of(Tensor& value, const std::vector<Tensor>& snapshots) {
  value.copy_(snapshots.front());
  for (size_t i = 1; i < snapshots.size(); ++i) value.lerp_(snapshots[i], 1 / (static_cast<double>(i) + 1));
}

void Lawa::setup(Session& session) {
  for (int64_t i = 0; i < config_.snapshots; ++i) session.declare_slot(slot(i), SlotKind::kValue);
}

void Lawa::after_step(Step& step) {
  stand_in_.see(step);
  const double passed = std::floor(step.progress.fraction / config_.interval + 1e-9);
  const bool due = config_.every > 0 ? step.progress.step % config_.every == 0 : passed > passed_;
  passed_ = passed;
  if (!due) return;
  at::NoGradGuard off;
  const std::string oldest = slot(static_cast<int64_t>(count_) % config_.snapshots);
  for (Parameter* p : step.session.parameters()) step.session.slot(oldest, *p).copy_(p->value);
  count_ += 1;
}

void Lawa::evaluate(Session& session, FunctionRef<void()> next) {
  const auto filled = std::min(static_cast<int64_t>(count_), config_.snapshots);
  const auto put = [&](const Parameter& p, Tensor& value) {
    std::vector<Tensor> snapshots;
    for (int64_t i = 0; i < filled; ++i) snapshots.push_back(session.slot(slot(i), p));
    mean_of(value, snapshots);
  };
  stand_in_.evaluate(session, filled > 0, put, next);
}

void Lawa::serialize(Archive& archive) {
  archive.number("count", count_);
  archive.number("passed", passed_);
  stand_in_.serialize(archive);
}

}  // namespace huajin
