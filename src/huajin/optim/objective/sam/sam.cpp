#include "huajin/optim/objective/sam/sam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>

namespace huajin {
namespace {

struct SamRestore {
  std::vector<Tensor> w, saved;
  ~SamRestore() {
    at::NoGradGuard off;
    at::_foreach_copy_(w, saved);
  }
};

}  // namespace

void sam_climb(const std::vector<Tensor>& w, const std::vector<Tensor>& g, const Tensor& norm, double rho) {
  const Tensor factor = rho / (norm + 1e-12);
  for (size_t i = 0; i < w.size(); ++i) w[i].addcmul_(g[i], factor.to(w[i].scalar_type()).squeeze());
}

bool Sam::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (config_.rho == 0 || step.progress.step % config_.every != 0) return next(pass);
  Pass probe = pass;
  probe.probe = true;
  if (!next(probe)) return false;
  SamRestore restore;
  std::vector<Tensor> g;
  for (Parameter* p : step.session.parameters()) {
    if (!p->grad.defined()) continue;
    restore.w.push_back(p->value);
    restore.saved.push_back(p->value.clone());
    g.push_back(p->grad);
  }
  {
    at::NoGradGuard off;
    sam_climb(restore.w, g, step.session.norm(), config_.rho);
  }
  g.clear();
  return next(pass);
}

}  // namespace huajin
