#include "huajin/optim/objective/distillation/distillation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace huajin {
namespace {

constexpr const char* kTeacher = "distillation";
constexpr const char* kAverage = "distillation.average";

}  // namespace

// KL(p | q) = sum p log p - sum p log q, and log q_T = z / T - log_partition(T); dot() is sum p_T z / T.
Tensor distillation_items(const Logits& student, const Logits& teacher, double temperature) {
  const Tensor cross = student.log_partition(temperature) - student.dot(teacher, temperature);
  const Tensor entropy = (teacher.log_partition(temperature) - teacher.dot(teacher, temperature)).detach();
  return (cross - entropy) * (temperature * temperature);
}

void Distillation::setup(Session& session) {
  if (config_.weight == 0) return;
  if (!averages()) return session.add_teacher_folder(kTeacher, config_.teacher, "distillation.teacher");
  session.declare_slot(kAverage, SlotKind::kValue);
  session.add_teacher(kTeacher, kAverage);
}

Loss Distillation::loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const {
  Loss loss = next(out, in);
  if (config_.weight == 0) return loss;
  loss.data() = loss.data() * (1 - config_.weight);
  loss.terms.push_back({"distillation", distillation_items(*out.logits, *out.teachers.at(kTeacher), config_.temperature), Per::kWeight, config_.weight});
  return loss;
}

void Distillation::after_step(Step& step) {
  if (!averages()) return;
  at::NoGradGuard off;
  for (Parameter* p : step.session.parameters()) step.session.slot(kAverage, *p).lerp_(p->value, 1 - config_.decay);
}

}  // namespace huajin
