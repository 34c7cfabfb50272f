// Tensors that are as they were when this goes out of scope, bit for bit, also when something threw: by copy, never by adding and subtracting.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <vector>

namespace huajin {

class PutBack {
 public:
  PutBack() = default;
  PutBack(const PutBack&) = delete;
  ~PutBack() {
    at::NoGradGuard off;
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(copies_[i]);
  }
  void keep(const at::Tensor& tensor) {
    tensors_.push_back(tensor);
    copies_.push_back(tensor.detach().clone());
  }
  bool empty() const { return tensors_.empty(); }

 private:
  std::vector<at::Tensor> tensors_, copies_;
};

}  // namespace huajin
