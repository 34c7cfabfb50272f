// A user's own torch::nn::Module as a layer (docs/design/models.md). Its parameters become declared weights and its buffers (running statistics)
// declared statistics, under their own names; the engine publishes values into them before a pass, so the module computes as it always does.
//
//   Model m;
//   m.add("body", foreign(torch::nn::Sequential(torch::nn::Linear(784, 64), torch::nn::ReLU())));
//   m.add("head", foreign(torch::nn::Linear(64, 10)));
//
// Accumulation, recomputation, data parallelism, ZeRO and (block by block) pipelines work. What doesn't: the tensor axis; a second set of values in
// one step (teachers); torch::nn::Dropout draws from the global generator, so it isn't keyed and can't be recomputed: leave it out or use a layer of
// huajin's. Initial values are those that the module was constructed with. This is the one header of huajin that costs 20 s to compile.
#pragma once
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/core/model.h"

namespace huajin {

template <class Module>
class Foreign : public Layer {
 public:
  explicit Foreign(std::shared_ptr<Module> module) : module_(std::move(module)) {
    for (auto& p : module_->named_parameters()) {
      const bool matrix = p.value().dim() >= 2;
      declared_.push_back(std::make_unique<Weight>(
          this, p.key(), p.value().sizes().vec(),
          WeightOptions{.role = matrix ? Role::kHidden : Role::kBias, .trainable = p.value().requires_grad(), .own = p.value()}));
    }
    for (auto& b : module_->named_buffers()) {
      buffers_.push_back(std::make_unique<Weight>(
          this, b.key(), b.value().sizes().vec(),
          WeightOptions{.role = Role::kStatistic, .keep_precision = true, .trainable = false, .momentum = 1, .own = b.value()}));
      values_.push_back(b.value());
    }
  }

  Tensor forward(Forward& f, const Tensor& x) const override {
    if (f.ranks > 1)
      throw UserError("a torch::nn::Module cannot be cut over the tensor axis; write the model with huajin's layers or use layout.tensor = 1");
    module_->train(f.training);
    if (!f.training || values_.empty()) return module_->forward(x);
    // The module writes its statistics into copies, and what it wrote is recorded: the mean over micro-batches and ranks becomes the value, once a
    // step. A swap, not a copy back: autograd saves buffers by reference and would notice the write.
    std::vector<Tensor> before;
    for (const Tensor& buffer : values_) {
      before.push_back(buffer.detach());
      const_cast<Tensor&>(buffer).set_data(buffer.clone());
    }
    Tensor y = module_->forward(x);
    for (size_t i = 0; i < values_.size(); ++i) {
      f.record(*buffers_[i], values_[i].detach(), 1);
      const_cast<Tensor&>(values_[i]).set_data(before[i]);
    }
    return y;
  }

 private:
  std::shared_ptr<Module> module_;
  std::vector<std::unique_ptr<Weight>> declared_, buffers_;
  std::vector<Tensor> values_;  // the module's buffers, in the order of buffers_
};

template <class Module>
std::unique_ptr<Layer> foreign(std::shared_ptr<Module> module) {
  return std::make_unique<Foreign<Module>>(std::move(module));
}
// For torch's module holders: torch::nn::Linear is a holder of torch::nn::LinearImpl.
template <class Impl>
std::unique_ptr<Layer> foreign(const torch::nn::ModuleHolder<Impl>& holder) {
  return std::make_unique<Foreign<Impl>>(holder.ptr());
}

}  // namespace huajin
