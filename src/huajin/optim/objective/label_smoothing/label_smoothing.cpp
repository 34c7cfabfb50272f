#include "huajin/optim/objective/label_smoothing/label_smoothing.h"

namespace huajin {

void LabelSmoothing::on_batch(Step& step) { step.batch.uniform_target = smoothed(step.batch.uniform_target, config_.mass); }

}  // namespace huajin
