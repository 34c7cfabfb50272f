// Any bytes as UTF-8: what is taken is written back the same; what is not, is not.
#include "huajin/io/utf8.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t invalid = find_invalid_utf8(text);
  for (size_t at = 0; at < size;) {
    size_t n = 0;
    const uint32_t point = read_code_point(text, at, n);
    if (n < 1 || at + n > size) std::abort();
    if (point == kNoCodePoint) {
      if (n != 1 || invalid > at) std::abort();
    } else if (utf8_of(point) != text.substr(at, n)) {
      std::abort();
    }
    at += n;
  }
  return 0;
}
