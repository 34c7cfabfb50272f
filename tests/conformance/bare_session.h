// A session without model, data or engine, for tests of a single hook: parameters with values and gradients that the test sets, slots, one process.
#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "huajin/core/model.h"
#include "huajin/core/technique.h"

namespace huajin {

class BareSession : public Session {
 public:
  Parameter& add(std::string name, Tensor value) {
    storage_.push_back({});
    Parameter& p = storage_.back();
    p.name = std::move(name);
    p.shape = value.sizes().vec();
    p.index = static_cast<int>(storage_.size()) - 1;
    p.value = std::move(value);
    pointers_.clear();
    for (auto& q : storage_) pointers_.push_back(&q);
    return p;
  }
  Step step(Progress progress = {}) { return Step{*this, batch, progress, {}, {}, {}, {}, {}, 0, false}; }
  Progress at(int64_t step, double fraction) const {
    Progress p;
    p.step = p.draw = step;
    p.fraction = fraction;
    return p;
  }

  Batch batch;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Schedule> schedule;
  uint64_t the_seed = 1;
  bool images = true;
  std::function<Tensor(const Batch&)> scores;  // what score() answers

  Model& model() override { throw std::logic_error("a bare session has no model"); }
  std::unique_ptr<Model> fresh_model() override { return nullptr; }
  void declare_slot(std::string_view owner, SlotKind kind) override { kinds_[std::string(owner)] = kind; }
  void add_transform(Transform) override {}
  void add_teacher(std::string_view, std::string_view) override {}
  void add_teacher_folder(std::string_view, const std::string&, std::string_view) override {}
  void set_optimizer(std::unique_ptr<Optimizer> o) override { optimizer = std::move(o); }
  void set_schedule(std::unique_ptr<Schedule> s) override { schedule = std::move(s); }
  void set_reducer(std::unique_ptr<Reducer>) override {}
  uint64_t seed() const override { return the_seed; }
  at::Device device() const override { return at::kCPU; }
  bool classifies() const override { return images; }
  std::span<Parameter* const> parameters() override { return pointers_; }
  Tensor& slot(std::string_view owner, const Parameter& p) override {
    const SlotKind kind = kinds_.at(std::string(owner));
    Tensor& t = slots_[std::string(owner)][p.index];
    if (!t.defined()) t = kind == SlotKind::kValue ? p.value.clone() : at::zeros_like(p.value);
    return t;
  }
  void each_slot(const Parameter& p, FunctionRef<void(SlotKind, Tensor&)> see) override {
    for (auto& [owner, tensors] : slots_)
      if (tensors.count(p.index)) see(kinds_.at(owner), tensors[p.index]);
  }
  Tensor norms(FunctionRef<Tensor(const Parameter&)> slice) override {
    std::vector<Tensor> tensors;
    for (Parameter* p : pointers_) tensors.push_back(slice(*p));
    return at::stack(at::_foreach_norm(tensors));
  }
  void gradients_changed() override {}
  Tensor norm() override {
    return norms([](const Parameter& p) { return p.grad.defined() ? p.grad : at::zeros_like(p.value); }).norm();
  }
  Tensor amax(const Parameter&, const Tensor& working) override { return working.abs().amax(); }
  Tensor whole(const Parameter&, const Tensor& slice) override { return slice; }
  Tensor cut(const Parameter&, const Tensor& whole) override { return whole; }
  Tensor score(const Batch& b, bool) override { return scores(b); }
  Tensor all_reduce(Tensor t, Axis) override { return t; }
  void rebuild(const Rebuild&) override { throw std::logic_error("a bare session does not grow"); }
  void roll_back(std::string_view) override { throw std::logic_error("a bare session does not roll back"); }

 private:
  std::deque<Parameter> storage_;
  std::vector<Parameter*> pointers_;
  std::map<std::string, SlotKind> kinds_;
  std::map<std::string, std::map<int, Tensor>> slots_;
};

}  // namespace huajin
