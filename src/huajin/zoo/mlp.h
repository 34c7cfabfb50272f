// Multilayer perceptron on flattened images: layers.N.{weight,bias}, head.{weight,bias}.
#pragma once
#include <cstdint>
#include <string>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"

namespace huajin {

struct MlpConfig {
  int64_t classes = 10, inputs = 784;  // decided by the data
  int64_t layers = 2, width = 256;
  std::string activation = "relu";  // relu | gelu | relu2
  double dropout = 0;
  void fields(Fields& f);
};

Model mlp(const MlpConfig& config);

}  // namespace huajin
