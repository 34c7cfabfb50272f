// Any bytes as tokenizer.json: refused with one line, or a tokenizer whose ids lie in its vocabulary.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "huajin/core/errors.h"
#include "huajin/io/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  static const std::string folder = [] {
    std::string path = std::string(std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") + "/huajin-fuzz-" + std::to_string(::getpid());
    std::filesystem::create_directories(path);
    return path;
  }();
  std::ofstream(folder + "/tokenizer.json", std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const auto tokenizer = load_tokenizer(folder);
    std::vector<uint32_t> ids;
    tokenizer->encode("step by step", ids);
    for (uint32_t id : ids)
      if (id >= static_cast<uint64_t>(tokenizer->vocabulary())) std::abort();
    tokenizer->decode(ids);
  } catch (const Error&) {
  }
  return 0;
}
