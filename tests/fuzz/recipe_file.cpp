// Any bytes as a recipe or as --set: refused with one line that names the file or the option, or its resolved text reads back as itself.
#include <cstdlib>
#include <cstring>

#include "huajin/core/errors.h"
#include "huajin/core/recipe.h"

namespace {

void one_line(const huajin::UserError& error, const char* where) {
  const std::string what = error.what();
  if (what.find('\n') != std::string::npos || what.compare(0, std::strlen(where), where) != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const std::string text = huajin::Recipe::read(bytes, "fuzz.toml").resolved();
    if (huajin::Recipe::read(text, "resolved.toml").resolved() != text) std::abort();
  } catch (const huajin::UserError& error) {
    one_line(error, "fuzz.toml");
  }
  try {
    huajin::Recipe().set(bytes);
  } catch (const huajin::UserError& error) {
    one_line(error, "--set");
  }
  return 0;
}
