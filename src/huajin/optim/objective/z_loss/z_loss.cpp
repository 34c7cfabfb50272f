#include "huajin/optim/objective/z_loss/z_loss.h"

#include <ATen/TensorOperators.h>

namespace huajin {

Loss ZLoss::loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const {
  Loss loss = next(out, in);
  if (config_.coefficient > 0) loss.terms.push_back({"z", out.logits->log_partition().square(), Per::kWeight, config_.coefficient});
  return loss;
}

}  // namespace huajin
