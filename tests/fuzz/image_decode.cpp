// Any bytes as a JPEG or PNG: refused with DamagedError, or an image of the size that its header says, within the cap.
#include "huajin/io/image_decode.h"

#include <cstdlib>

#include "huajin/core/errors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  constexpr int64_t kCap = 1 << 16;
  const Bytes file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const Image image = decode_image(file, "fuzz", kCap);
    const ImageSize said = image_size(file, "fuzz", kCap);
    if (said.height != image.height || said.width != image.width || said.channels != image.channels) std::abort();
    if (image.height * image.width > kCap || static_cast<int64_t>(image.pixels.size()) != image.height * image.width * image.channels) std::abort();
  } catch (const DamagedError&) {
  }
  return 0;
}
