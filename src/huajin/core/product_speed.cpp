#include "huajin/core/product_speed.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace huajin {
namespace {

using SpeedClock = std::chrono::steady_clock;
double seconds_since(SpeedClock::time_point start) { return std::chrono::duration<double>(SpeedClock::now() - start).count(); }

double timed_product(const at::Tensor& a, const at::Tensor& b) {
  const auto start = SpeedClock::now();
  const at::Tensor product = at::mm(a, b);
  if (!a.is_cpu()) product[0][0].item();  // a device only queues it
  return seconds_since(start);
}

}  // namespace

double product_flops(at::ScalarType type, at::Device device, double seconds, int64_t most) try {
  const at::NoGradGuard off;
  const auto start = SpeedClock::now();
  double fastest = 0;
  for (int64_t size = 128; size <= most; size *= 2) {
    const at::Tensor a = at::ones({size, size}, at::TensorOptions(type).device(device)), b = at::ones({size, size}, a.options());
    double best = 1e30;
    for (int i = 0; i < 3 || (size * 2 > most && seconds_since(start) < seconds); ++i) {  // the first also wakes threads and chooses a kernel
      best = std::min(best, timed_product(a, b));
      if (seconds_since(start) > seconds) break;
    }
    fastest = std::max(fastest, 2.0 * std::pow(static_cast<double>(size), 3) / best);
    if (best * 8 > seconds / 10 || seconds_since(start) > seconds) break;
  }
  return fastest;
} catch (const c10::Error&) {
  return 0;
}

}  // namespace huajin
