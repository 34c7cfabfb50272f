#include "huajin/system/optimization/spike/spike.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace huajin {

double z_score(double loss, const Tensor& losses) {
  const double mean = losses.mean().item().toDouble(), deviation = losses.std().item().toDouble();
  if (!(loss > mean)) return 0;
  return deviation > 0 ? (loss - mean) / deviation : std::numeric_limits<double>::infinity();
}

Spike::Spike(const SpikeConfig& config) : config_(config), losses_(at::zeros({config.window}, at::kDouble)) {}

bool Spike::gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) {
  if (!next(pass)) return false;
  if (config_.deviations == 0 || pass.probe || seen_ < config_.window) return true;
  const double loss = step.loss.item().toDouble(), z = z_score(loss, losses_);
  if (z <= config_.deviations) return true;
  const std::string what = fmt::format("the loss {:.4g} is {:.3g} standard deviations above the last {}", loss, z, config_.window);
  if (in_a_row_ < config_.most) {
    ++in_a_row_;
    step.skip_reason = what;
    return false;
  }
  if (config_.then == "accept") return true;
  step.skip_reason = what + fmt::format(", after {} spikes in a row: back to the newest checkpoint", in_a_row_);
  in_a_row_ = 0;
  step.session.roll_back(what);  // serialize() brings the window of that time
  return false;
}

void Spike::after_step(Step& step) {
  if (config_.deviations == 0) return;
  if (in_a_row_ >= config_.most) seen_ = 0;  // accepted: the old level is no measure any more
  losses_[seen_++ % config_.window] = step.loss.to(at::kCPU);
  in_a_row_ = 0;
}

void Spike::serialize(Archive& archive) {
  auto seen = static_cast<double>(seen_), in_a_row = static_cast<double>(in_a_row_);
  archive.number("seen", seen);
  archive.number("in_a_row", in_a_row);
  archive.tensor("losses", losses_);
  seen_ = static_cast<int64_t>(seen);
  in_a_row_ = static_cast<int64_t>(in_a_row);
  if (losses_.numel() == config_.window) return;
  losses_ = at::zeros({config_.window}, at::kDouble);  // another window than that of the checkpoint: it fills anew
  seen_ = 0;
}

}  // namespace huajin
