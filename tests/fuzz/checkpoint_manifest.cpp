// Any bytes as manifest.json: refused with DamagedError, or written again they are the same bytes. The hash over the text would stop the fuzzer at
// the door, so it is also given the right one.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/json.h"

namespace {

void read_and_write_again(const std::string& text) {
  try {
    const huajin::Manifest manifest = huajin::parse_manifest(text, "fuzz");
    const std::string again = huajin::manifest_text(manifest);
    if (huajin::manifest_text(huajin::parse_manifest(again, "fuzz")) != again) std::abort();
  } catch (const huajin::DamagedError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_and_write_again(text);
  try {
    Json json = parse_json(text, "fuzz");
    if (!json.is_object()) return 0;
    json.erase("self");
    json["self"] = xxh3_hex(json_text(json, 1));
    read_and_write_again(json_text(json, 1) + "\n");
  } catch (const DamagedError&) {
  }
  return 0;
}
