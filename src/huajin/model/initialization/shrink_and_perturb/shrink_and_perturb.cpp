#include "huajin/model/initialization/shrink_and_perturb/shrink_and_perturb.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "huajin/core/keyed.h"
#include "huajin/core/rng.h"

namespace huajin {

void shrink_and_perturb(Tensor value, const ShrinkAndPerturbConfig& config, uint64_t key) {
  if (config.shrink != 1) value.mul_(config.shrink);
  if (config.noise == 0) return;
  Tensor z = at::empty(value.sizes(), at::TensorOptions(value.scalar_type()));
  fill_normal(z, key, config.noise);
  value.add_(z.to(value.device()));
}

bool ShrinkAndPerturb::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (!done_ && step.progress.draw == 0 && (config_.shrink != 1 || config_.noise != 0)) {
    at::NoGradGuard off;
    for (Parameter* p : step.session.parameters()) {
      if (p->shape.size() < 2) continue;
      shrink_and_perturb(p->value, config_, mix(step.session.seed(), static_cast<uint64_t>(Purpose::kTechnique), hash_name("shrink_and_perturb"), hash_name(p->name)));
      step.session.each_slot(*p, [&](SlotKind kind, Tensor& slot) {
        if (kind == SlotKind::kValue) slot.copy_(p->value);  // averages begin at the weights
      });
    }
  }
  done_ = true;
  return next(pass);
}

void ShrinkAndPerturb::serialize(Archive& archive) {
  double done = done_;
  archive.number("done", done);
  done_ = done != 0;
}

}  // namespace huajin
