// Model soups: the average of the weights of several finished runs of one model. Wortsman et al., "Model soups: averaging weights of multiple fine-tuned
// models improves accuracy without increasing inference time", ICML 2022 (arXiv 2203.05482): uniform (section 2) and greedy (algorithm 1).
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "huajin/core/function_ref.h"
#include "huajin/io/safetensors.h"

namespace huajin {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Names, shapes and types agree, or UserError: the folder, the first tensor that differs, and in what.
void require_same_tensors(const Safetensors& first, const std::string& first_folder, const Safetensors& other, const std::string& other_folder);

// The mean of the chosen members, tensor by tensor, summed in float64 and rounded once; whole numbers as in the first. Members agree.
NamedTensors uniform_soup(const std::vector<NamedTensors>& members, const std::vector<size_t>& chosen);

struct GreedySoup {
  std::vector<size_t> chosen;  // members, the best first
  double loss = 0;             // of their mean
};
// From the lowest loss to the highest, a member stays in the soup if the mean with it is no worse than without. `loss_of` is the held-out loss of the mean
// of these members; losses that are not finite come last and never improve. So the soup is never worse than the best member.
GreedySoup greedy_soup(const std::vector<double>& losses, FunctionRef<double(const std::vector<size_t>& chosen)> loss_of);

}  // namespace huajin
