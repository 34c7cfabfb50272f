#include "huajin/model/initialization/fans.h"

#include <functional>

namespace huajin {

std::map<const Weight*, bool> transposed_weights(const Model& model) {
  std::map<const Weight*, bool> transposed;
  const std::function<void(const Layer&)> look = [&](const Layer& layer) {
    for (const Weight* matrix : layer.weights) {
      if (matrix->shape.size() != 2) continue;
      transposed[matrix] = matrix->options.role == Role::kEmbedding;
      for (const Weight* bias : layer.weights)
        if (bias->shape.size() == 1 && bias->options.role == Role::kBias && bias->shape[0] == matrix->shape[1] && bias->shape[0] != matrix->shape[0])
          transposed[matrix] = true;
    }
    for (const PartBase* part : layer.parts) look(*part->layer);
  };
  for (auto& block : model.blocks) look(*block.layer);
  return transposed;
}

Fans fans_of(const Weight& weight, bool transposed) {
  double window = 1;
  for (size_t i = 2; i < weight.shape.size(); ++i) window *= static_cast<double>(weight.shape[i]);
  const auto first = static_cast<double>(weight.shape[0]), second = static_cast<double>(weight.shape[1]);
  const double parts = weight.options.parts;
  return transposed ? Fans{first, second / parts} : Fans{second * window, first * window / parts};
}

}  // namespace huajin
