#include "huajin/model/initialization/mup/coordinate_check.h"

#include <ATen/TensorOperators.h>

#include <memory>

namespace huajin {
namespace {

struct Watched : Layer {
  Watched(std::unique_ptr<Layer> layer, std::shared_ptr<double> to) : inner(this, "", std::move(layer)), size(std::move(to)) {}
  Part<> inner;
  std::shared_ptr<double> size;
  Tensor forward(Forward& f, const Tensor& x) const override { return seen(inner(f, x)); }
  Flow flow(Forward& f, Flow x) const override {
    Flow y = inner.layer->flow(f, std::move(x));
    seen(y[0]);
    return y;
  }
  double extra_flops(int64_t length) const override { return inner.layer->extra_flops(length); }

 private:
  const Tensor& seen(const Tensor& y) const {
    *size = y.detach().abs().mean().item().toDouble();
    return y;
  }
};

}  // namespace

std::vector<std::pair<std::string, double>> activation_sizes(RunSession& session, Trainer& trainer, int64_t steps) {
  std::vector<std::shared_ptr<double>> sizes;
  for (auto& block : session.model().blocks) {
    sizes.push_back(std::make_shared<double>(0));
    block.layer = std::make_unique<Watched>(std::move(block.layer), sizes.back());
  }
  for (int64_t i = 0; i <= steps; ++i) trainer.step();
  std::vector<std::pair<std::string, double>> result;
  for (size_t b = 0; b < sizes.size(); ++b) result.emplace_back(session.model().blocks[b].name, *sizes[b]);
  return result;
}

}  // namespace huajin
