// The part that train and resume share: observers, the loop, result.json, what is printed at the end.
#pragma once
#include <string>

#include "app/command_line.h"
#include "huajin/run/run.h"

namespace huajin {

struct FitOptions {
  int rank = 0;
  bool resumed = false;
  bool first_steps = false;  // of a newcomer: print what to try next
};
// Exit code: 0, 143 after SIGTERM or SIGINT.
int fit_and_report(Run& run, const std::string& folder, const CommandLine& line, FitOptions options);

}  // namespace huajin
