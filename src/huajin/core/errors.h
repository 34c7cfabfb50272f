// What goes wrong for a reason that the user can mend. Each message is one line: what is wrong, the value, what is allowed, where
// (file, key, line), and the fix. The command line prints it and exits with the code; the library throws it.
#pragma once
#include <stdexcept>
#include <string>

namespace huajin {

enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,     // a fault of ours
  kExitUsage = 2,        // bad option, recipe, data or machine state: found before step 1
  kExitDamaged = 3,      // a file that was written by huajin (or claims a known format) is truncated, altered or hostile
  kExitNotFinite = 4,    // training diverged and the policy said stop
  kExitRankLost = 5,     // another rank died or hangs
  kExitTerminated = 143  // SIGTERM, SIGINT: the state was saved; `huajin resume` goes on
};

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};
class UserError : public Error {
 public:
  explicit UserError(const std::string& message) : Error(kExitUsage, message) {}
};
class DamagedError : public Error {
 public:
  explicit DamagedError(const std::string& message) : Error(kExitDamaged, message) {}
};

}  // namespace huajin
