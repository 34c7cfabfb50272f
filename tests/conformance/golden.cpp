#include "golden.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "bare_session.h"
#include "huajin/core/recipe.h"

namespace huajin {
namespace {

Tensor tensor_of(const nlohmann::json& numbers, const std::vector<int64_t>& shape, at::ScalarType dtype) {
  auto values = numbers.get<std::vector<double>>();
  return at::from_blob(values.data(), shape, at::kDouble).to(dtype, false, true);
}

bool contains(const nlohmann::json& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

// What serialize() keeps, from the technique that ends to the one that goes on.
struct Carried : Archive {
  bool loading = false;
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, Tensor, std::less<>> tensors;
  void number(std::string_view name, double& value) override {
    if (loading)
      value = numbers.find(name)->second;
    else
      numbers.emplace(name, value);
  }
  void tensor(std::string_view name, Tensor& value) override {
    if (loading)
      value = tensors.find(name)->second.clone();
    else
      tensors.emplace(name, value.clone());
  }
  void rank_tensor(std::string_view name, Tensor& value) override { tensor(name, value); }
};

void run_case(const nlohmann::json& one, at::ScalarType dtype, double tolerance, bool resumed, bool strided) {
  const auto& all = golden();
  BareSession session;
  for (const auto& [name, shape] : all["shapes"].items()) {
    const Tensor value = tensor_of(all["weights"][name], shape.get<std::vector<int64_t>>(), dtype);
    Parameter& p = session.add(name, strided ? at::stack({value, value}, -1).select(-1, 0) : value);
    p.decay = contains(all["decays"], name);
    p.hidden_matrix = contains(all["hidden"], name);
  }
  auto technique = make_from(one["name"], one["options"]);
  technique->setup(session);
  for (size_t step = 0; step < one["trace"].size(); ++step) {
    if (resumed && step == 3) {
      Carried kept;
      technique->serialize(kept);
      technique = make_from(one["name"], one["options"]);
      technique->setup(session);
      kept.loading = true;
      technique->serialize(kept);
    }
    for (Parameter* p : session.parameters()) {
      const auto& g = all["gradients"][step][p->name];
      p->grad = g.is_null() ? Tensor() : tensor_of(g, p->shape, dtype);
    }
    session.optimizer->begin(session.step(session.at(static_cast<int64_t>(step), 0)), all["factors"][step]);
    session.optimizer->step(session.parameters());
    for (Parameter* p : session.parameters()) {
      const Tensor wanted = tensor_of(one["trace"][step][p->name], p->shape, at::kDouble);
      const double off = ((p->value.to(at::kDouble) - wanted).abs() / wanted.abs().clamp_min(1)).max().item<double>();
      EXPECT_LE(off, tolerance) << one["name"] << " " << one["options"].dump() << ", step " << step << ", " << p->name
                                << (resumed ? ", resumed" : "");
    }
  }
}

nlohmann::json golden_file(const char* name) {
  std::ifstream file(std::string(HUAJIN_SOURCE_DIR) + "/tests/golden/" + name);
  return nlohmann::json::parse(file);
}

}  // namespace

const nlohmann::json& golden() {
  static const nlohmann::json all = golden_file("optimizers.json");
  return all;
}

const nlohmann::json& golden_schedules() {
  static const nlohmann::json all = golden_file("schedules.json");
  return all;
}

std::unique_ptr<Technique> make_from(const std::string& name, const nlohmann::json& options) {
  Choice choice{name, {}, {}};
  for (const auto& [key, value] : options.items()) choice.given[key] = value.dump();
  ChoiceReader reader(choice, name);
  auto technique = catalog().find(name)->make(reader);
  reader.finish();
  return technique;
}

void expect_golden_optimizer(const std::string& name, at::ScalarType dtype, double tolerance, bool strided) {
  int found = 0;
  for (const auto& one : golden()["optimizers"]) {
    if (one["name"] != name) continue;
    ++found;
    for (const bool resumed : {false, true}) run_case(one, dtype, tolerance, resumed, strided);
  }
  EXPECT_GE(found, 2);
}

}  // namespace huajin
