#include "huajin/core/finite_report.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>

namespace huajin {
namespace {

struct Found {
  std::string first;  // what is wrong with the first
  int64_t count = 0;  // of tensors

  void look(const char* what, const std::string& name, const Tensor& t) {
    if (!t.defined() || at::isfinite(t).all().item().toBool() || count++ > 0) return;
    const auto number = [](const Tensor& which) { return std::to_string(which.sum().item().toLong()); };
    first = what + name + " is not finite (" + number(at::isnan(t)) + " NaN, " + number(at::isinf(t)) + " infinite of " + std::to_string(t.numel()) + ")";
  }
  std::string line() const { return first + (count > 1 ? ", and of " + std::to_string(count - 1) + " more" : ""); }
};

}  // namespace

std::string finite_report(std::span<const Parameter> parameters) {
  Found values, gradients;
  for (auto& p : parameters) values.look("the weight ", p.name, p.value), gradients.look("the gradient of ", p.name, p.grad);
  if (values.count > 0) return values.line();
  if (gradients.count > 0) return gradients.line();
  return "the loss is not finite";
}

}  // namespace huajin
