// Any bytes as a safetensors file: refused with DamagedError, or every byte belongs to exactly one tensor.
#include <cstdlib>

#include "huajin/core/errors.h"
#include "huajin/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  const Bytes file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const SafetensorsHeader header = parse_safetensors(file, "fuzz");
    uint64_t bytes = 0;
    for (const StoredTensor& tensor : header.tensors) {
      if (tensor.data.size() != tensor_bytes(tensor.dtype, tensor.shape, "fuzz")) std::abort();
      if (!tensor.data.empty() && tensor.data.data() != file.data() + tensor.offset) std::abort();
      for (std::byte byte : tensor.data)
        bytes += 1 + (static_cast<unsigned>(byte) & 0);  // reads it, so that the sanitizer sees a view that is too long
    }
    uint64_t length = 0;
    for (int i = 0; i < 8; ++i) length |= uint64_t{data[i]} << (8 * i);
    if (bytes + 8 + length != size) std::abort();
  } catch (const DamagedError&) {
  }
  return 0;
}
