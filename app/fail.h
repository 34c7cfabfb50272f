// Errors as a person wants them: one plain line.
#pragma once
#include <exception>
#include <string>

namespace huajin {

struct Failure {
  int code;
  std::string line;    // without "huajin: "
  std::string detail;  // for --debug: the whole text, with the library's back-trace
};
// Of the exception that is being handled. What comes from libtorch is cut to its first sentence and named as such.
Failure current_failure();

}  // namespace huajin
