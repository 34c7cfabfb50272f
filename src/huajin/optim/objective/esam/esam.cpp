#include "huajin/optim/objective/esam/esam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "huajin/core/keyed.h"
#include "huajin/core/rng.h"
#include "huajin/optim/objective/perturbation.h"

namespace huajin {
namespace {

// The step's batch as it was, whatever happens between.
struct WholeBatch {
  Step& step;
  Batch batch;
  explicit WholeBatch(Step& s) : step(s), batch(s.batch) {}
  ~WholeBatch() { step.batch = std::move(batch); }
};

}  // namespace

Tensor esam_rows(const Tensor& rise, int64_t group, double share) {
  const int64_t groups = rise.numel() / group;
  const int64_t taken = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(share * static_cast<double>(groups))), 1, groups);
  const Tensor sums = rise.slice(0, 0, groups * group).reshape({groups, group}).sum(1);
  const Tensor best = std::get<0>(at::argsort(sums, /*stable=*/true, 0, /*descending=*/true).slice(0, 0, taken).sort());
  return (best.unsqueeze(1) * group + at::arange(group, best.options())).reshape({-1});
}

Batch rows_of(const Batch& batch, const Tensor& rows) {
  Batch part = batch;
  const auto take = [&](Tensor& t) {
    if (t.defined()) t = t.index_select(0, rows.to(t.device()));
  };
  for (Tensor* t : {&part.id, &part.weight, &part.partner, &part.input_mix, &part.target_mix, &part.noise}) take(*t);
  for (auto& [name, t] : part.extra) take(t);
  return part;
}

Needs Esam::needs() const {
  const Needs always = kSeveralPasses | kAllGradients | kMovesWeights;
  return config_.rho > 0 && config_.data < 1 ? always | kExampleLosses | kChangesShapes : always;
}

bool Esam::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (config_.rho == 0) return next(pass);
  Session& session = step.session;
  Pass probe = pass;
  probe.probe = true;
  if (!next(probe)) return false;
  Directions g = gradients_of(session);
  const Tensor norm = session.norm();
  if (config_.weights < 1) {
    const auto parameters = session.parameters();
    for (size_t i = 0; i < g.size(); ++i) {
      if (!g[i].defined()) continue;
      const uint64_t key = mix(session.seed(), static_cast<uint64_t>(Purpose::kTechnique), hash_name("esam"), static_cast<uint64_t>(step.progress.draw),
                               hash_name(parameters[i]->name));
      g[i] = g[i] * keep_mask(&key, 1, g[i].numel(), config_.weights, g[i].scalar_type()).to(g[i].device()).view(g[i].sizes());
    }
  }
  const Climb there(session, std::move(g), norm, config_.rho);
  if (config_.data == 1) return next(pass);
  const WholeBatch whole(step);
  Tensor loss = session.score(step.batch, /*training_mode=*/true).to(at::kDouble);
  if (loss.dim() > 1) loss = loss.mean(1);
  step.batch = rows_of(step.batch, esam_rows((loss - step.example_loss).to(at::kCPU), std::max<int64_t>(1, step.batch.group), config_.data));
  return next(pass);
}

}  // namespace huajin
