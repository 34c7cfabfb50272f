#include "huajin/optim/objective/sam/sam.h"

#include "huajin/optim/objective/perturbation.h"

namespace huajin {

bool Sam::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (config_.rho == 0 || step.progress.step % config_.every != 0) return next(pass);
  Pass probe = pass;
  probe.probe = true;
  if (!next(probe)) return false;
  const Climb there(step.session, gradients_of(step.session), step.session.norm(), config_.rho);
  return next(pass);
}

}  // namespace huajin
