#include "huajin/optim/learning_rate/layer_decay/layer_decay.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace huajin {

std::vector<double> layer_rates(const std::vector<Model::Entry>& table, double decay) {
  std::vector<int> blocks;
  for (auto& entry : table) blocks.push_back(*std::max_element(entry.blocks.begin(), entry.blocks.end()));
  const int top = *std::max_element(blocks.begin(), blocks.end());
  std::vector<double> rates;
  for (int block : blocks) rates.push_back(std::pow(decay, top - block));
  return rates;
}

void shorten_step(Tensor value, const Tensor& before, double rate) { value.lerp_(before, 1 - rate); }

void LayerDecay::update(Step& step, FunctionRef<void()> next) {
  if (config_.decay == 1) return next();
  const std::vector<double> rates = layer_rates(step.session.model().number(), config_.decay);  // each step: the model may have grown
  at::NoGradGuard off;
  std::vector<std::pair<Parameter*, Tensor>> before;
  for (Parameter* p : step.session.parameters())
    if (rates.at(static_cast<size_t>(p->index)) < 1) before.emplace_back(p, p->value.clone());
  next();
  for (auto& [p, value] : before) shorten_step(p->value, value, rates[static_cast<size_t>(p->index)]);
}

}  // namespace huajin
