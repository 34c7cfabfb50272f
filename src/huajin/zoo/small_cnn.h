// A convolutional network that learns images of about 32 x 32 in minutes, after the shape of Keller Jordan's airbench (arXiv 2404.00498): a small
// first convolution, three groups of two convolutions with batch norm and GELU, pooling after the first of each, a global maximum and a scaled head.
// Names: first, groups.N.conv1, groups.N.norm1, ..., head.
#pragma once
#include <cstdint>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"

namespace huajin {

struct SmallCnnConfig {
  int64_t classes = 10, channels = 3, height = 32, width = 32;  // decided by the data
  int64_t first = 24;                                           // filters of the first convolution
  int64_t group1 = 64, group2 = 128, group3 = 128;              // of the groups
  double head_scale = 0.111;                                    // factor on the logits
  double momentum = 0.4;                                        // of the running statistics
  void fields(Fields& f);
};

Model small_cnn(const SmallCnnConfig& config);  // UserError for images too small

}  // namespace huajin
