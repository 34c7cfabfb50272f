#include "huajin/model/initialization/initializer/initializer.h"

#include <cmath>

#include "huajin/core/errors.h"

namespace huajin {

Init init_by_law(const InitializerConfig& config, const Fans& fans) {
  const bool kaiming = config.law.starts_with("kaiming");
  const double gain = config.gain > 0 ? config.gain : kaiming ? std::sqrt(2.0) : 1;
  if (config.law == "orthogonal") return orthogonal(gain);
  const double deviation = config.law == "xavier" ? gain * std::sqrt(2 / (fans.in + fans.out)) : gain / std::sqrt(config.law == "kaiming" ? fans.in : fans.out);
  return config.shape == "uniform" ? uniform(std::sqrt(3.0) * deviation) : normal(deviation);
}

void Initializer::setup(Session& session) {
  if (config_.law == "declared") return;
  const auto transposed = transposed_weights(session.model());
  bool found = false;
  for (auto& entry : session.model().number()) {
    Weight& weight = *entry.weight;
    const Init::Kind kind = weight.options.init.kind;
    if (weight.options.role != Role::kHidden || weight.shape.size() < 2 || kind == Init::kZeros || kind == Init::kOnes || weight.options.own.defined()) continue;
    const auto at = transposed.find(&weight);
    weight.options.init = init_by_law(config_, fans_of(weight, at != transposed.end() && at->second));
    found = true;
  }
  if (!found) throw UserError("initializer: the model has no hidden matrix that starts at random; drop initializer");
}

}  // namespace huajin
