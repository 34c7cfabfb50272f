#include "huajin/optim/averaging/soup/soup.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "huajin/core/errors.h"

namespace huajin {

void require_same_tensors(const Safetensors& first, const std::string& first_folder, const Safetensors& other, const std::string& other_folder) {
  const auto refuse = [&](const std::string& what) {
    throw UserError(fmt::format("{}: {}; average only runs of one model", other_folder, what));
  };
  for (const StoredTensor& tensor : first.tensors()) {
    const StoredTensor* same = other.find(tensor.name);
    if (same == nullptr) refuse(fmt::format("has no tensor {}, which {} has", tensor.name, first_folder));
    else if (same->shape != tensor.shape)
      refuse(fmt::format("{} is {}, but {} in {}", tensor.name, fmt::join(same->shape, "x"), fmt::join(tensor.shape, "x"), first_folder));
    else if (same->dtype != tensor.dtype)
      refuse(fmt::format("{} is of type {}, but {} in {}", tensor.name, same->dtype, tensor.dtype, first_folder));
  }
  for (const StoredTensor& tensor : other.tensors())
    if (first.find(tensor.name) == nullptr) refuse(fmt::format("has a tensor {}, which {} has not", tensor.name, first_folder));
}

NamedTensors uniform_soup(const std::vector<NamedTensors>& members, const std::vector<size_t>& chosen) {
  NamedTensors soup;
  for (size_t t = 0; t < members.at(chosen.at(0)).size(); ++t) {
    const auto& [name, first] = members[chosen[0]][t];
    if (!first.is_floating_point() || chosen.size() == 1) {
      soup.emplace_back(name, first.clone());
      continue;
    }
    at::Tensor sum = first.to(at::kDouble);
    for (size_t i = 1; i < chosen.size(); ++i) sum = sum + members[chosen[i]].at(t).second.to(at::kDouble);
    soup.emplace_back(name, (sum / static_cast<double>(chosen.size())).to(first.scalar_type()));
  }
  return soup;
}

GreedySoup greedy_soup(const std::vector<double>& losses, FunctionRef<double(const std::vector<size_t>& chosen)> loss_of) {
  const auto rank = [&](size_t i) { return std::isfinite(losses[i]) ? losses[i] : std::numeric_limits<double>::infinity(); };
  std::vector<size_t> order(losses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  GreedySoup soup{{order.at(0)}, rank(order[0])};
  for (size_t i = 1; i < order.size(); ++i) {
    std::vector<size_t> with = soup.chosen;
    with.push_back(order[i]);
    const double loss = loss_of(with);
    if (loss <= soup.loss) soup = {std::move(with), loss};
  }
  return soup;
}

}  // namespace huajin
