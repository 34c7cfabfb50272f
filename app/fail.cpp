#include "app/fail.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

// One line, without a library's file names and back-trace.
std::string plain(std::string text) {
  for (const char* end : {"\nException raised from", "\nframe #", "frame #", "\n"})
    if (const size_t at = text.find(end); at != std::string::npos && at > 0) text.resize(at);
  for (const char* noise : {"INTERNAL ASSERT FAILED at ", "[enforce fail at "})
    if (const size_t at = text.find(noise); at != std::string::npos) {
      const size_t comma = text.find(", please report", at);
      text = text.substr(0, at) + "an internal check failed" +
             (comma == std::string::npos ? "" : text.substr(text.find('.', comma) == std::string::npos ? text.size() : text.find('.', comma)));
    }
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  if (text.size() > 400) text = text.substr(0, 400) + "...";
  return text;
}

bool out_of_memory(const std::string& text) {
  return text.find("not enough memory") != std::string::npos || text.find("can't allocate memory") != std::string::npos ||
         text.find("out of memory") != std::string::npos;
}

constexpr const char* kMemoryFix =
    "not enough memory; set execution.micro_rows or execution.recompute=true, or make batch.rows, batch.length or the model smaller";

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    return {error.code(), line, ""};
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (out_of_memory(what)) return {kExitUsage, kMemoryFix, error.what()};
    return {kExitInternal, "libtorch: " + plain(what) + " (a fault of huajin's: --debug tells where)", error.what()};
  } catch (const std::bad_alloc& error) {
    return {kExitUsage, kMemoryFix, error.what()};
  } catch (const std::exception& error) {
    return {kExitInternal, plain(error.what()) + " (a fault of huajin's: --debug tells more)", error.what()};
  } catch (...) {
    return {kExitInternal, "unknown exception (a fault of huajin's)", ""};
  }
}

}  // namespace huajin
