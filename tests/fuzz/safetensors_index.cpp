// Any bytes as model.safetensors.index.json: refused with DamagedError, or every file name stays in the folder.
#include <cstdlib>

#include "huajin/core/errors.h"
#include "huajin/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& [tensor, path] : parse_safetensors_index(text, "/nowhere/model", "fuzz")) {
      if (path.rfind("/nowhere/model/", 0) != 0) std::abort();
      if (("/" + path + "/").find("/../") != std::string::npos) std::abort();
    }
  } catch (const DamagedError&) {
  }
  return 0;
}
