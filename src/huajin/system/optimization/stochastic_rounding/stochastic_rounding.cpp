#include "huajin/system/optimization/stochastic_rounding/stochastic_rounding.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

// bfloat16 is float32's upper half: a random lower half is added, and the carry rounds up as often as it should. The sign is a bit of its own.
float rounded(float x, uint32_t random) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (!std::isfinite(x)) return x;
  return std::bit_cast<float>((bits + (random & 0xffffu)) & 0xffff0000u);
}

// 29 bits more than float32: the step between neighbours is 2^(exponent - 7), below the smallest normal number 2^-133.
double rounded(double x, uint32_t random) {
  if (!std::isfinite(x) || x == 0) return x;
  const int step = std::max(std::ilogb(x), -126) - 7;
  return std::ldexp(std::floor(std::ldexp(x, -step) + static_cast<double>(random) * 0x1p-32), step);
}

template <class T>
void round_all(T* x, int64_t count, uint64_t key) {
  at::parallel_for(0, (count + 3) / 4, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto random = philox(key, static_cast<uint64_t>(block));
      for (int64_t i = 4 * block; i < std::min(4 * block + 4, count); ++i) x[i] = rounded(x[i], random[static_cast<size_t>(i % 4)]);
    }
  });
}

}  // namespace

void round_to_bfloat16(Tensor& values, uint64_t key) {
  if (!values.is_cpu() || !values.is_contiguous() || (values.scalar_type() != at::kFloat && values.scalar_type() != at::kDouble))
    throw UserError("stochastic_rounding: works on contiguous float32 or float64 weights on the CPU; use --device cpu");
  if (values.scalar_type() == at::kFloat) round_all(values.mutable_data_ptr<float>(), values.numel(), key);
  else round_all(values.mutable_data_ptr<double>(), values.numel(), key);
  values.unsafeGetTensorImpl()->bump_version();  // working copies follow the version
}

// Right after the optimizer: averages and all who come later see what the model will multiply with.
void StochasticRounding::update(Step& step, FunctionRef<void()> next) {
  next();
  at::NoGradGuard off;
  for (Parameter* p : step.session.parameters()) {
    if (p->shape.size() < 2 && !config_.vectors) continue;
    round_to_bfloat16(p->value, mix(step.session.seed(), static_cast<uint64_t>(Purpose::kTechnique), hash_name("stochastic_rounding"),
                                    static_cast<uint64_t>(step.progress.draw), hash_name(p->name)));
  }
}

}  // namespace huajin
