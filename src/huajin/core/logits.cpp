#include "huajin/core/logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/softmax.h>
#include <torch/csrc/autograd/custom_function.h>

#include "huajin/core/softmax.h"

namespace huajin {
namespace {

// The logits become their own gradient in the backward pass, unless somebody else has looked at them.
struct FusedCrossEntropy : torch::autograd::Function<FusedCrossEntropy> {
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& logits, const Tensor& targets, int64_t shared) {
    const int64_t classes = logits.size(-1), rows = logits.numel() / classes;
    const Tensor flat = logits.detach().reshape({rows, classes}), wanted = targets.reshape({rows}).contiguous();
    Tensor lse = at::empty({rows}, flat.options());
    log_sum_exp_rows(flat.const_data_ptr<float>(), rows, classes, lse.mutable_data_ptr<float>());
    const Tensor items = lse - at::gather(flat, 1, wanted.clamp_min(0).unsqueeze(1)).squeeze(1);
    ctx->saved_data["logits"] = flat;
    ctx->saved_data["targets"] = wanted;
    ctx->saved_data["lse"] = lse;
    ctx->saved_data["shared"] = shared;
    ctx->saved_data["shape"] = logits.sizes().vec();
    return items.view(targets.sizes());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    Tensor x = ctx->saved_data["logits"].toTensor();
    const Tensor targets = ctx->saved_data["targets"].toTensor(), lse = ctx->saved_data["lse"].toTensor();
    if (*reinterpret_cast<const bool*>(ctx->saved_data["shared"].toInt())) x = x.clone();
    const Tensor grad = grads[0].reshape({-1}).to(at::kFloat).contiguous();
    softmax_gradient_rows(x.mutable_data_ptr<float>(), lse.const_data_ptr<float>(), targets.const_data_ptr<int64_t>(), grad.const_data_ptr<float>(), x.size(0),
                          x.size(1));
    return {x.view(ctx->saved_data["shape"].toIntVector()), Tensor(), Tensor()};
  }
};

class DenseLogits : public Logits {
 public:
  explicit DenseLogits(Tensor logits) : raw_(std::move(logits)) {}

  Tensor log_partition(double temperature) const override { return at::logsumexp(temperature == 1 ? wide() : wide() / temperature, -1); }
  Tensor at(const Tensor& classes) const override { return at::gather(wide(), -1, classes.unsqueeze(-1)).squeeze(-1); }
  Tensor mean() const override { return wide().mean(-1); }
  Tensor dot(const Logits& teacher, double temperature) const override {
    const Tensor p = at::softmax(teacher.whole().to(wide().scalar_type()) / temperature, -1).detach();
    return (p * wide()).sum(-1) / temperature;
  }
  Tensor whole() const override { return wide(); }
  Tensor cross_entropy(const Tensor& classes) const override {
    if (raw_.scalar_type() == at::kFloat && raw_.is_cpu() && raw_.is_contiguous() && !used_) {
      used_ = true;
      return FusedCrossEntropy::apply(raw_, classes, reinterpret_cast<int64_t>(shared_.get()));
    }
    *shared_ = true;
    const Tensor items = at::_log_softmax(wide(), -1, false);
    return -at::gather(items, -1, classes.unsqueeze(-1)).squeeze(-1);
  }
  int64_t classes() const override { return raw_.size(-1); }

 private:
  const Tensor& wide() const {
    *shared_ = true;
    if (!wide_.defined()) wide_ = raw_.scalar_type() == at::kDouble ? raw_ : raw_.to(at::kFloat);
    return wide_;
  }
  Tensor raw_;
  mutable Tensor wide_;
  mutable bool used_ = false;
  std::shared_ptr<bool> shared_ = std::make_shared<bool>(false);
};

}  // namespace

std::shared_ptr<Logits> dense_logits(Tensor logits) { return std::make_shared<DenseLogits>(std::move(logits)); }

}  // namespace huajin
