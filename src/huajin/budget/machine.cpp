#include "huajin/budget/machine.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace huajin {
namespace {

double product_flops(at::ScalarType type) {
  constexpr int64_t kSize = 512;
  at::NoGradGuard off;
  const at::Tensor a = at::ones({kSize, kSize}, type), b = at::ones({kSize, kSize}, type);
  double best = 1e30;
  for (int i = 0; i < 4; ++i) {  // the first one also wakes the threads
    const auto start = std::chrono::steady_clock::now();
    at::mm(a, b);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2.0 * kSize * kSize * kSize / best;
}

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

Machine measure_machine() { return {at::get_num_threads(), product_flops(at::kFloat), product_flops(at::kBFloat16), usable_memory()}; }

}  // namespace huajin
