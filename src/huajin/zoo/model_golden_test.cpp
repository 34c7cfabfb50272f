// Logits and the gradient of every weight against transformers in float64 (tests/golden/zoo_models.py).
#include <gtest/gtest.h>

#include <fstream>

#include "huajin/core/checkpoint.h"
#include "huajin/io/safetensors.h"
#include "huajin/zoo/hugging_face.h"
#include "huajin/zoo/test_model.h"

namespace huajin {
namespace {

const Safetensors& golden() {
  static const Safetensors file(HUAJIN_SOURCE "/tests/golden/zoo_models.safetensors");
  return file;
}
Tensor golden_tensor(const std::string& name) {
  const StoredTensor* found = golden().find(name);
  if (found == nullptr) throw Error(kExitInternal, "golden file has no " + name);
  return to_tensor(*found, name);
}

TestModel golden_model(const std::string& kind, at::ScalarType type) {
  TestModel m(model_of_config(golden().metadata().at(kind), kind), type);
  at::NoGradGuard off;
  for (size_t i = 0; i < m.entries.size(); ++i) m.values[i].copy_(golden_tensor(kind + "/weight/" + m.entries[i].name));
  return m;
}

// Names every tensor whose gradient is further from the reference than `tolerance` of the reference's largest element.
std::string wrong_gradients(const std::string& kind, const TestModel& m, double tolerance) {
  std::string wrong;
  for (size_t i = 0; i < m.entries.size(); ++i) {
    const Tensor expected = golden_tensor(kind + "/grad/" + m.entries[i].name);
    // A key's bias shifts all scores of a row alike, so its gradient is zero but for rounding.
    const bool zero = m.entries[i].name.ends_with("key.bias") && expected.abs().max().item<double>() < 1e-14;
    const double difference = zero ? m.values[i].grad().abs().max().item<double>() : relative_difference(m.values[i].grad(), expected);
    if (!(difference <= tolerance)) wrong += m.entries[i].name + " by " + std::to_string(difference) + "; ";
  }
  return wrong;
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, LogitsAndEveryGradient) {
  const std::string kind = GetParam();
  for (const auto type : {at::kDouble, at::kFloat}) {
    TestModel m = golden_model(kind, type);
    size_t weights = 0;
    for (auto& t : golden().tensors()) weights += t.name.starts_with(kind + "/weight/");
    EXPECT_EQ(weights, m.entries.size()) << "weights that the reference has and the model has not";
    Tensor inputs = golden_tensor(kind + "/inputs");
    if (inputs.is_floating_point()) inputs = inputs.to(type);
    const Tensor logits = m(inputs);
    EXPECT_LE(relative_difference(logits, golden_tensor(kind + "/logits")), type == at::kDouble ? 1e-12 : 3e-6);
    torch::autograd::backward({(logits * golden_tensor(kind + "/probe").to(type)).sum()});
    EXPECT_EQ(wrong_gradients(kind, m, type == at::kDouble ? 1e-11 : 2e-5), "");
    if (type == at::kFloat) continue;
    // The check itself: one gradient that is 1 % off, in the tensor with the smallest gradients, must be found and named.
    size_t smallest = 0;
    for (size_t i = 0; i < m.values.size(); ++i)
      if (!m.entries[i].name.ends_with("key.bias") &&
          m.values[i].grad().abs().max().item<double>() < m.values[smallest].grad().abs().max().item<double>())
        smallest = i;
    m.values[smallest].mutable_grad() = m.values[smallest].grad() * 1.01;
    EXPECT_NE(wrong_gradients(kind, m, 1e-11).find(m.entries[smallest].name), std::string::npos);
  }
}
INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::Values("gpt2", "llama", "qwen3", "vit"), [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace huajin
