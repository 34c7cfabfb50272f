// Trains a torch::nn::Module of one's own with huajin: AdamW, a schedule to zero, a budget in seconds; the validation accuracy is printed.
#include <huajin/core/communicator.h>
#include <huajin/core/foreign.h>
#include <huajin/core/process.h>
#include <huajin/core/recipe.h>
#include <huajin/core/registry.h>
#include <huajin/core/trainer.h>
#include <huajin/data/tensor_source.h>
#include <torch/nn.h>

struct Body : torch::nn::Module {
  torch::nn::Linear in{2, 64}, middle{64, 64};
  Body() { register_module("in", in), register_module("middle", middle); }
  at::Tensor forward(const at::Tensor& x) { return torch::tanh(middle(torch::tanh(in(x)))); }
};

int main() {
  huajin::start_process();
  torch::manual_seed(1);
  const auto points = torch::rand({4000, 2}) * 2 - 1;  // inside a ring, or not: no straight line parts them
  const auto radius = points.norm(2, 1), label = (radius > 0.4).logical_and(radius < 0.8).to(torch::kLong);

  auto model = std::make_unique<huajin::Model>();
  model->add("body", huajin::foreign(std::make_shared<Body>()));  // as many blocks as you like; the last one's output is the logits
  model->add("head", huajin::foreign(torch::nn::Linear(64, 2).ptr()));
  huajin::Recipe recipe;
  for (auto* setting : {"optimizer.learning_rate=0.03", "schedule.name=linear"}) recipe.set(setting);
  auto data = std::make_shared<huajin::TensorSource>(points.slice(0, 0, 3600), label.slice(0, 0, 3600), 2);
  huajin::TensorEvaluation validation(points.slice(0, 3600), label.slice(0, 3600));
  huajin::RunSession session(std::move(model), data, make_techniques(huajin::catalog(), recipe), huajin::single_process(), {.seed = 1});
  session.build();
  huajin::Trainer trainer(session, {.limits = huajin::parse_limits("400step, 20s", "example"), .rows = 128}, &validation, nullptr);
  const huajin::Result result = trainer.fit();
  std::printf("accuracy %.3f after %ld steps\n", result.evaluation.accuracy, long(result.state.progress.step));
  return result.evaluation.accuracy > 0.95 ? 0 : 1;
}
