// The one list of every technique: what a recipe may name.
#include "huajin/core/registry.h"

namespace huajin {

const Registry& catalog() {
  static const Registry registry = [] {
    Registry r;
    return r;
  }();
  return registry;
}

}  // namespace huajin
