// Gradient clipping by global norm, and by value. Pascanu et al., "On the difficulty of training recurrent neural networks", ICML 2013, algorithm 1.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct ClipConfig {
  double norm = 1, value = 0;
  void fields(Fields& f) {
    f.number("norm", norm, {.least = 0}, "greatest global norm of the gradient; 0: no bound");
    f.number("value", value, {.least = 0}, "greatest magnitude of one element, applied before the norm; 0: no bound");
  }
};

// g <- g min(1, most / (norm + 1e-6)) for every tensor; `norm` has one element, on the gradients' device. Nothing waits for the device. On the CPU,
// where looking is free, gradients within the bound aren't touched.
void clip_to_norm(const std::vector<Tensor>& gradients, const Tensor& norm, double most);
void clip_to_value(const std::vector<Tensor>& gradients, double most);

class Clip : public Technique {
 public:
  explicit Clip(const ClipConfig& config);  // UserError if both bounds are off
  std::string_view name() const override { return "clip"; }
  Needs needs() const override { return kAllGradients; }
  void on_gradients(Step& step) override;

 private:
  ClipConfig config_;
};

}  // namespace huajin
