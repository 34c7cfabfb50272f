// Distillation. Hinton, Vinyals and Dean, "Distilling the Knowledge in a Neural Network", 2015 (arXiv 1503.02531), section 2:
//   (1 - weight) CE(targets, q) + weight T^2 KL(p_T | q_T),   p_T = softmax(teacher's logits / T), q_T = softmax(logits / T)
// The T^2 keeps the gradient's size as T grows; for large T it becomes that of matching centred logits, (z - v) / classes an item.
// The teacher is a model from a folder, or (no folder) the moving average of the weights that are being trained: Tarvainen and Valpola, "Mean teachers are
// better role models", NeurIPS 2017 (arXiv 1703.01780), with the KL of above as the consistency cost.
#pragma once
#include <string>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct DistillationConfig {
  std::string teacher;
  double weight = 0.5, temperature = 2, decay = 0.99;
  void fields(Fields& f) {
    f.text("teacher", teacher, {}, "a run, one of its checkpoints, or a model's folder; empty: the moving average of the weights themselves");
    f.number("weight", weight, {.least = 0, .most = 1}, "share of the teacher in the loss; 0: off");
    f.number("temperature", temperature, {.least = 0, .open = true}, "by which both sides' logits are divided");
    f.number("decay", decay, {.least = 0, .most = 1, .open_most = true}, "of the moving average; unused with a teacher");
  }
};

// T^2 KL(teacher | student) of each item, both at the temperature T. Differentiable in the student alone.
Tensor distillation_items(const Logits& student, const Logits& teacher, double temperature);

class Distillation : public Technique {
 public:
  explicit Distillation(const DistillationConfig& config) : config_(config) {}
  std::string_view name() const override { return "distillation"; }
  void setup(Session& session) override;
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override;
  void after_step(Step& step) override;

 private:
  bool averages() const { return config_.weight > 0 && config_.teacher.empty(); }
  DistillationConfig config_;
};

}  // namespace huajin
