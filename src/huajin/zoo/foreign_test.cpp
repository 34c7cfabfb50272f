// A net of torch::nn modules trained by huajin's engine equals the same net trained by libtorch's own loop.
#include "huajin/core/foreign.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules.h>
#include <torch/optim/sgd.h>

#include "huajin/core/communicator.h"
#include "huajin/core/session.h"
#include "huajin/core/trainer.h"

namespace huajin {
namespace {

class Points : public Source {  // random points and labels, fixed by their id
 public:
  bool classifies() const override { return true; }
  int64_t size() const override { return 40; }
  int64_t classes() const override { return 4; }
  int64_t units_per_row(int64_t) const override { return 1; }
  Tensor ids(uint64_t, int64_t at, int64_t rows, int64_t) const override { return (at::arange(rows, at::kLong) + at).remainder(size()); }
  Examples load(const Tensor& ids, int64_t, const Tensor&, int64_t, bool) const override {
    Examples e;
    e.inputs = at::sin(ids.to(at::kFloat).unsqueeze(1) * at::arange(1, 7, at::kFloat));
    e.targets = ids.remainder(4);
    e.index.id = ids;
    return e;
  }
};

struct Descent : Technique {
  std::string_view name() const override { return "descent"; }
  struct Rule : Optimizer {
    void step(std::span<Parameter* const> parameters) override {
      at::NoGradGuard off;
      for (Parameter* p : parameters) p->value.sub_(p->grad, 0.1);
    }
    double learning_rate() const override { return 0.1; }
  };
  struct Flat : Schedule {
    double factor(const Progress&) const override { return 1; }
  };
  void setup(Session& s) override {
    s.set_optimizer(std::make_unique<Rule>());
    s.set_schedule(std::make_unique<Flat>());
  }
};

torch::nn::Sequential body() {
  return torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::Tanh(), torch::nn::Linear(8, 8), torch::nn::ReLU());
}

// Names what differs by more than 1e-6 after 8 steps of 10 rows.
std::string difference_to_libtorch(bool recompute) {
  torch::manual_seed(7);
  auto theirs = body(), ours = body();
  torch::nn::Linear their_head(8, 4), our_head(8, 4);
  const auto copy = [](torch::nn::Module& to, torch::nn::Module& from) {
    at::NoGradGuard off;
    for (auto& p : to.named_parameters()) p.value().copy_(from.named_parameters()[p.key()]);
  };
  copy(*ours, *theirs);
  copy(*our_head, *their_head);

  auto model = std::make_unique<Model>();
  model->add("body", foreign(ours));
  model->add("head", foreign(our_head));
  std::vector<std::unique_ptr<Technique>> techniques;
  techniques.push_back(std::make_unique<Descent>());
  auto source = std::make_shared<Points>();
  RunSession session(std::move(model), source, std::move(techniques), single_process(), {.seed = 3, .recompute = recompute});
  session.build();
  Trainer trainer(session, {.limits = parse_limits("8step", "test"), .rows = 10, .length = 1}, nullptr, nullptr);

  std::vector<Tensor> all = theirs->parameters();
  for (auto& p : their_head->parameters()) all.push_back(p);
  torch::optim::SGD sgd(all, 0.1);
  std::string wrong;
  for (int step = 0; step < 8; ++step) {
    const Examples e = source->load(source->ids(3, step * 10, 10, 1), 1, Tensor(), 0, true);
    sgd.zero_grad();
    const Tensor loss = at::cross_entropy_loss(their_head(theirs->forward(e.inputs)), e.targets);
    loss.backward();
    sgd.step();
    trainer.step();
    if (std::abs(trainer.last_loss() - loss.item<double>()) > 1e-6) wrong += "loss of step " + std::to_string(step) + "; ";
  }
  for (auto& p : session.table().parameters) {
    const bool of_body = p.name.starts_with("body.");
    const std::string name = p.name.substr(5);
    torch::nn::Module& module = of_body ? static_cast<torch::nn::Module&>(*theirs) : *their_head;
    const auto parameters = module.named_parameters(), buffers = module.named_buffers();
    const Tensor expected = parameters.contains(name) ? parameters[name] : buffers[name];
    if ((p.value - expected).abs().max().item<double>() > 1e-6) wrong += p.name + "; ";
  }
  if (session.table().parameters.size() != 11) wrong += "6 + 2 parameters and 3 statistics expected";
  return wrong;
}

TEST(Foreign, SequentialTrainsAsInLibtorch) { EXPECT_EQ(difference_to_libtorch(false), ""); }
TEST(Foreign, RecomputationRecordsStatisticsOnce) { EXPECT_EQ(difference_to_libtorch(true), ""); }

}  // namespace
}  // namespace huajin
