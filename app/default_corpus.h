// The text that `huajin train` learns from when it is given none: the C++ headers of libtorch, which every machine that builds huajin has.
#pragma once
#include <string>

namespace huajin {

// Makes the file in `cache` (once), and returns its path. Every header under torch/include in the order of their paths, until 8 MB are full.
// UserError where libtorch's headers are not on this machine.
std::string default_corpus(const std::string& cache);

}  // namespace huajin
