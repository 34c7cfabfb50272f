// The program `huajin-engine`: every command that works with models.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "app/commands.h"
#include "app/fail.h"
#include "huajin/core/errors.h"
#include "huajin/core/process.h"

namespace huajin {
namespace {

int dispatch(const CommandLine& line) {
  static const std::map<std::string, int (*)(const CommandLine&)> kCommands{
      {"train", train_command},     {"resume", resume_command}, {"eval", eval_command},     {"generate", generate_command}, {"bench", bench_command},
      {"plan", plan_command},       {"check", check_command},   {"verify", verify_command}, {"compare", compare_command},   {"list", list_command},
      {"explain", explain_command}, {"data", data_command},     {"doctor", doctor_command}, {"average", average_command},
      {"report", report_command}, {"transfer", transfer_command}};
  return kCommands.at(line.command)(line);
}

}  // namespace
}  // namespace huajin

int main(int count, char** arguments) {
  bool debug = false;
  int code = huajin::kExitInternal;
  try {
    const huajin::Parsed parsed = huajin::parse_command_line(count, arguments);
    if (parsed.finished) {
      std::fputs(parsed.text.c_str(), stdout);
      return huajin::kExitOk;
    }
    debug = parsed.line.debug;
    huajin::start_process(parsed.line.threads);
    code = huajin::dispatch(parsed.line);
    if (std::fflush(stdout) != 0 && code == huajin::kExitOk)
      throw huajin::UserError("stdout: cannot be written; is the disk full, or the reader gone?");
  } catch (...) {
    const huajin::Failure failure = huajin::current_failure();
    code = failure.code;
    std::fflush(stdout);
    std::fprintf(stderr, "huajin: %s\n", failure.line.c_str());
    if (debug && !failure.detail.empty()) std::fprintf(stderr, "%s\n", failure.detail.c_str());
  }
  std::fflush(nullptr);
  std::_Exit(code);  // libtorch's destructors take time that the budget does not have
}
