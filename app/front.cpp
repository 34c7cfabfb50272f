// The program `huajin`: answers help and mistakes at once, and becomes `huajin-engine` (same process, same start time) for everything else.
#include <cstdlib>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "app/command_line.h"
#include "huajin/core/errors.h"

namespace {

// Beside this program, or where an installation puts it.
std::string engine_path() {
  std::error_code failed;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  for (auto& candidate : {here / "huajin-engine", here / "../libexec/huajin/huajin-engine"})
    if (std::filesystem::exists(candidate, failed)) return candidate.string();
  return (here / "huajin-engine").string();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const huajin::Parsed parsed = huajin::parse_command_line(count, arguments);
    if (parsed.finished) return std::fputs(parsed.text.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? huajin::kExitUsage : huajin::kExitOk;
  } catch (const huajin::Error& error) {
    std::fprintf(stderr, "huajin: %s\n", error.what());
    return error.code();
  }
  const std::string engine = engine_path();
  // Threads of the step wait for each other some thousand times a second. libgomp lets them spin for milliseconds, which takes the core from whoever could go on
  // as soon as the machine has anything else to do: on 2 cores that compilers kept busy, a step took 984 ms, and 233 with this (10 steps each).
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "1000", 0);
  execv(engine.c_str(), arguments);
  std::fprintf(stderr, "huajin: cannot start %s: %s; build it with ./huajin or cmake --build\n", engine.c_str(), std::strerror(errno));
  return huajin::kExitInternal;
}
