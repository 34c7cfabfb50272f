// ResNet with basic blocks (He et al., 2016) and, for small images, a 3 x 3 stem without pooling (their section 4.2). Names as torchvision's: conv1,
// bn1, layer1.0.conv1, ..., fc.
#pragma once
#include <cstdint>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"

namespace huajin {

struct ResNetConfig {
  int64_t classes = 10, channels = 3, height = 32, width = 32;  // decided by the data
  int64_t depth = 18;                                           // 10, 18 or 34
  int64_t filters = 64;                                         // of the first stage; each later one has twice as many
  bool large_stem = false;                                      // 7 x 7 with stride 2, then pooling: for images of 100 pixels and more
  bool zero_scale = true;                                       // last norm of a block starts at zero (Goyal et al., 2017, section 5.1)
  double momentum = 0.1;                                        // of the running statistics
  void fields(Fields& f);
};

Model resnet(const ResNetConfig& config);  // UserError for an unknown depth, images too small

}  // namespace huajin
