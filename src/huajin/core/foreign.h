// A user's own torch::nn::Module as a block of a model. It includes no torch/nn: the file that defines the module does, once.
//
//   auto model = std::make_unique<huajin::Model>();
//   model->add("features", huajin::foreign(std::make_shared<Features>()));   // block by block: each may be recomputed and is a bucket of gradients
//   model->add("head", huajin::foreign(std::make_shared<Head>()));           // the last block's output is the logits
//
// Every named_parameters() entry becomes a weight that starts at the value it has and keeps its name; the engine writes the working copy into the
// module's own tensor before a pass. The module computes in its own precision (float32 unless it was converted), whatever the recipe's is.
// Works: accumulation, recomputation, data parallelism, checkpoints, every optimizer and most techniques. Not with a cut over the tensor axis; buffers
// (running statistics) stay the module's own and are not in checkpoints; its random numbers come from libtorch's global generator, so a run with
// dropout in the module is not repeatable to the bit. All ranks must construct it with the same values (torch::manual_seed).
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "huajin/core/model.h"

namespace huajin {

template <class Module>
class Foreign : public Layer {
 public:
  explicit Foreign(std::shared_ptr<Module> m) : module_(std::move(m)) {
    for (auto& item : module_->named_parameters()) {
      const Tensor& value = item.value();
      const bool matrix = value.dim() >= 2;
      own_.push_back(std::make_unique<Weight>(
          this, item.key(), value.sizes().vec(),
          WeightOptions{.role = matrix ? Role::kHidden : Role::kBias, .keep_precision = true, .trainable = value.requires_grad(), .own = value}));
    }
  }
  Tensor forward(Forward& f, const Tensor& x) const override {
    module_->train(f.training);
    // A module writes its statistics in forward; a recomputation must not do so again, and copying back would trip the first pass's graph.
    std::vector<Tensor> buffers, kept;
    if (f.recomputing) buffers = module_->buffers();
    for (Tensor& b : buffers) {
      kept.push_back(b.detach());
      b.set_data(b.clone());
    }
    const bool convert = x.is_floating_point() && !own_.empty() && x.scalar_type() != own_.front()->options.own.scalar_type();
    Tensor y = module_->forward(convert ? x.to(own_.front()->options.own.scalar_type()) : x);
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].set_data(kept[i]);
    return y;
  }

 private:
  std::shared_ptr<Module> module_;
  std::vector<std::unique_ptr<Weight>> own_;
};

template <class Module>
std::unique_ptr<Layer> foreign(std::shared_ptr<Module> module) {
  return std::make_unique<Foreign<Module>>(std::move(module));
}

}  // namespace huajin
