#include "huajin/optim/objective/distillation/distillation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "conformance/tiny.h"
#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"
#include "huajin/core/logits.h"

namespace huajin {
namespace {

Tensor numbers(std::vector<int64_t> shape, uint64_t key, at::ScalarType dtype = at::kDouble) {
  Tensor t = at::empty(shape, dtype);
  fill_normal(t, key, 2);
  return t;
}

TEST(Distillation, EqualsTheDivergenceTimesTheSquaredTemperature) {
  const Tensor z = numbers({4, 7}, 1), v = numbers({4, 7}, 2);
  for (const double t : {0.5, 1.0, 3.0}) {
    const Tensor log_p = at::log_softmax(v / t, -1), log_q = at::log_softmax(z / t, -1);
    const Tensor wanted = t * t * (log_p.exp() * (log_p - log_q)).sum(-1);
    EXPECT_LT((distillation_items(*dense_logits(z), *dense_logits(v), t) - wanted).abs().max().item<double>(), 1e-12);
  }
  EXPECT_LT(distillation_items(*dense_logits(z), *dense_logits(z), 2).abs().max().item<double>(), 1e-12);
}

TEST(Distillation, GradientIsTheDifferenceOfProbabilitiesTimesTheTemperature) {
  const Tensor v = numbers({3, 5}, 2), z = numbers({3, 5}, 1).requires_grad_(true), teacher = v.clone().requires_grad_(true);
  const double t = 2;
  torch::autograd::backward({distillation_items(*dense_logits(z * 1.0), *dense_logits(teacher * 1.0), t).sum()});
  const Tensor wanted = t * (at::log_softmax(z.detach() / t, -1).exp() - at::log_softmax(v / t, -1).exp());
  EXPECT_LT((z.grad() - wanted).abs().max().item<double>(), 1e-12);
  EXPECT_FALSE(teacher.grad().defined());
}

// Hinton et al., equation 4: at a high temperature it matches logits, whatever the temperature is, which the square makes so.
TEST(Distillation, AtAHighTemperatureMatchesLogits) {
  const Tensor v = numbers({3, 5}, 2), z = numbers({3, 5}, 1).requires_grad_(true);
  torch::autograd::backward({distillation_items(*dense_logits(z * 1.0), *dense_logits(v), 1e5).sum()});
  const Tensor apart = z.detach() - v;
  EXPECT_LT((z.grad() - (apart - apart.mean(-1, true)) / 5).abs().max().item<double>(), 1e-4);
}

TinyOptions learner(const std::string& teacher) {
  TinyOptions options;
  options.text = true;
  options.techniques = {{"distillation", {{"teacher", teacher}, {"weight", 1}, {"temperature", 1}}}};
  return options;
}

// Only the teacher's probabilities are learnt: its own loss is the same as the student's in the end, and it is neither among the weights nor in a checkpoint.
TEST(Distillation, LearnsFromAModelThatIsSavedNowhere) {
  TinyOptions taught;
  taught.text = true;
  taught.steps = 30;
  TinyRun teacher(taught);
  for (int i = 0; i < 30; ++i) teacher.trainer().step();
  Trace before, after;
  before.finish(teacher);
  TinyOptions options = learner("anywhere");
  options.steps = 60;
  options.seed = 5;  // other weights
  TinyRun student(options);
  int opened = 0;
  student.session().teacher_opener = [&](const std::string& folder, const std::string& key) -> Teacher {
    EXPECT_EQ(folder, "anywhere");
    EXPECT_EQ(key, "distillation.teacher");
    ++opened;
    return [&](const Tensor& inputs) { return teacher.session().execution().logits(inputs, nullptr, 0); };
  };
  const double untaught = student.trainer().evaluate().loss;
  EXPECT_EQ(opened, 0);  // who only evaluates needs no teacher
  for (int i = 0; i < 60; ++i) student.trainer().step();
  EXPECT_EQ(opened, 1);
  const double own = teacher.trainer().evaluate().loss, learnt = student.trainer().evaluate().loss;
  EXPECT_LT(learnt - own, 0.5 * (untaught - own));
  after.finish(teacher);
  EXPECT_EQ(difference(after, before), "");
  TinyRun alone(taught);
  alone.trainer().step();  // momentum is there once a step was made
  Trace mine, plain;
  mine.finish(student), plain.finish(alone);
  ASSERT_EQ(mine.state.size(), plain.state.size());
  for (size_t i = 0; i < plain.state.size(); ++i) EXPECT_EQ(mine.state[i].first, plain.state[i].first);
}

TEST(Distillation, RefusesATeacherOfOtherClasses) {
  TinyRun student(learner("anywhere"));
  EXPECT_THROW(student.trainer().step(), UserError);  // nothing can open it
  student.session().teacher_opener = [](const std::string&, const std::string&) -> Teacher {
    return [](const Tensor& inputs) { return numbers({inputs.size(0), inputs.size(1), 14}, 3, at::kFloat); };
  };
  try {
    student.trainer().fit();
    FAIL() << "it trained";
  } catch (const UserError& error) {
    const std::string line = error.what();
    EXPECT_NE(line.find("distillation.teacher=\"anywhere\""), std::string::npos) << line;
    EXPECT_NE(line.find("14 classes"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace huajin
