// Any bytes as a token file: refused, or every id is there and below the vocabulary that the file names.
#include "huajin/io/token_shard.h"

#include <cstdlib>

#include "huajin/core/errors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  const Bytes file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const TokenHeader header = parse_token_shard(file, "fuzz");
    if (1024 + header.count * static_cast<uint64_t>(header.width) != size) std::abort();
    for (uint64_t i = 0; i < header.count; ++i) {
      uint32_t id = 0;
      std::memcpy(&id, data + 1024 + i * static_cast<uint64_t>(header.width), static_cast<size_t>(header.width));
      if (header.vocabulary != 0 && id >= header.vocabulary) std::abort();
    }
  } catch (const DamagedError&) {
  } catch (const UserError&) {
  }
  return 0;
}
