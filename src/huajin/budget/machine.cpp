#include "huajin/budget/machine.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "huajin/core/product_speed.h"

namespace huajin {
namespace {

double usable_memory() {
  double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    double limit = 0;
    if (file >> limit && limit > 0) bytes = std::min(bytes, limit);  // "max" is no number: no limit
  }
  return bytes;
}

}  // namespace

Machine measure_machine() { return {at::get_num_threads(), product_flops(at::kFloat, at::kCPU), product_flops(at::kBFloat16, at::kCPU), usable_memory()}; }

}  // namespace huajin
