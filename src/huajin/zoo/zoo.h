// The list of models that a recipe may name in [model] name.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"

namespace huajin {

struct ModelInput {                             // what the data decides
  int64_t classes = 0;                          // labels, or vocabulary
  int64_t context = 0;                          // longest sequence; text only
  int64_t channels = 0, height = 0, width = 0;  // images only
};

struct ZooEntry {
  std::string name, what;
  bool images;                                                    // else text
  std::function<void(Fields&)> describe;                          // defaults
  std::function<Model(Fields& reader, const ModelInput&)> build;  // reads its config through `reader`. UserError for sizes that don't fit
};

const std::vector<ZooEntry>& zoo();
const ZooEntry& find_model(std::string_view name);  // UserError with the nearest name

}  // namespace huajin
