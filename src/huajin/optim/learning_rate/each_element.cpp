#include "huajin/optim/learning_rate/each_element.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace huajin {
namespace {

constexpr int64_t kRange = 1 << 16;  // elements a core takes at a time

struct ElementRange {
  size_t tensor;
  int64_t begin, end;
};

}  // namespace

bool can_loop(const ParameterLists& p) {
  if (p.w.empty()) return true;
  const auto type = p.w[0].scalar_type();
  if (type != at::kFloat && type != at::kDouble) return false;
  const auto fits = [&](const Tensor& t) { return t.device().is_cpu() && t.is_contiguous() && t.scalar_type() == type; };
  const auto all_fit = [&](const Tensors& tensors) { return std::all_of(tensors.begin(), tensors.end(), fits); };
  return all_fit(p.w) && all_fit(p.g) && std::all_of(p.slots.begin(), p.slots.end(), all_fit);
}

void each_range(const Tensors& tensors, FunctionRef<void(size_t, int64_t, int64_t)> visit) {
  std::vector<ElementRange> ranges;
  int64_t elements = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t size = tensors[i].numel();
    for (int64_t begin = 0; begin < size; begin += kRange) ranges.push_back({i, begin, std::min(begin + kRange, size)});
    elements += size;
  }
  const auto count = static_cast<int64_t>(ranges.size());
  // Few elements aren't worth a thread: each gets at least a range's worth.
  const int64_t grain = std::max<int64_t>(1, count * kRange / std::max<int64_t>(elements, 1));
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      visit(ranges[static_cast<size_t>(r)].tensor, ranges[static_cast<size_t>(r)].begin, ranges[static_cast<size_t>(r)].end);
  });
}

}  // namespace huajin
