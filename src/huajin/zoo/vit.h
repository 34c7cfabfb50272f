// Vision transformer (Dosovitskiy et al., 2021). Weights have the names of Hugging Face's ViTForImageClassification, whose config.json is
// Model::config_json.
#pragma once
#include <cstdint>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"

namespace huajin {

struct VitConfig {
  int64_t classes = 10, channels = 3, size = 32;  // decided by the data; images are square
  int64_t patch = 4;
  int64_t layers = 6, heads = 4, width = 128;
  int64_t hidden = 0;  // of the MLP; 0: 4 width
  double dropout = 0;
  double epsilon = 1e-12;
  double init = 0.02;
  void fields(Fields& f);
};

Model vit(const VitConfig& config);  // UserError for sizes that don't fit each other

}  // namespace huajin
