// Any bytes as a tar, as IDX, as gzip: refused with DamagedError, or entries that lie inside the bytes and stay below their folder.
#include <cstdlib>

#include "huajin/core/errors.h"
#include "huajin/io/image_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  const Bytes file = std::as_bytes(std::span(data, size));
  try {
    for (const TarEntry& entry : parse_tar(file, "fuzz")) {
      if (entry.name.empty() || entry.name[0] == '/' || ("/" + entry.name + "/").find("/../") != std::string::npos) std::abort();
      if (!entry.content.empty() && (entry.content.data() < file.data() || entry.content.data() + entry.content.size() > file.data() + file.size())) std::abort();
    }
  } catch (const DamagedError&) {
  }
  try {
    const std::string text = inflate_if_packed(file, "fuzz", 1 << 20);
    const IdxFile idx = parse_idx(as_bytes(text), "fuzz", 1 << 20);
    uint64_t total = 1;
    for (const int64_t n : idx.shape) total *= static_cast<uint64_t>(n);
    if (total != idx.values.size()) std::abort();
  } catch (const DamagedError&) {
  }
  return 0;
}
