// One pass over memory for updates that look at one element at a time, on the CPU: written for one element, compiled to vectors, run on all cores.
//
//   if (each_element<1>(p, [=](auto& w, auto g, auto& m) { m += g;  w -= decltype(g)(rate) * m; })) return;
//   ... the same with at::_foreach_ operations, for other devices
//
// The function's numbers must be cast to the element's type, or float32 is computed in float64; it must not branch on elements but by `? :`.
#pragma once
#include <cmath>
#include <tuple>
#include <utility>

#include "huajin/core/function_ref.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

// float32 or float64, contiguous, on the CPU: what each_element() can do.
bool can_loop(const ParameterLists& p);
// visit(tensor, begin, end) for ranges of elements that cover all tensors, on all cores. Ranges depend on sizes only.
void each_range(const Tensors& tensors, FunctionRef<void(size_t, int64_t, int64_t)> visit);

template <class T, class Function, size_t... kSlot>
void loop_elements(const ParameterLists& p, const Function& function, std::index_sequence<kSlot...>) {
  each_range(p.w, [&](size_t i, int64_t begin, int64_t end) {
    T* w = p.w[i].mutable_data_ptr<T>();
    const T* g = p.g[i].const_data_ptr<T>();
    [[maybe_unused]] const auto slots = std::make_tuple(p.slots[kSlot][i].template mutable_data_ptr<T>()...);
#pragma omp simd
    for (int64_t j = begin; j < end; ++j) function(w[j], T(g[j]), std::get<kSlot>(slots)[j]...);
  });
}

// function(w&, g, slot&...) for each element, with the first kSlots slots. False, and nothing done, if the tensors aren't such that it can.
template <size_t kSlots, class Function>
bool each_element(const ParameterLists& p, const Function& function) {
  if (!can_loop(p)) return false;
  if (p.w.empty()) return true;
  if (p.w[0].scalar_type() == at::kFloat)
    loop_elements<float>(p, function, std::make_index_sequence<kSlots>());
  else
    loop_elements<double>(p, function, std::make_index_sequence<kSlots>());
  return true;
}

}  // namespace huajin
