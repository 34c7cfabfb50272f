// What optimizers share: the parameters of a call as lists of tensors, their slots, which of them decay, the rate and the step. An optimizer is then
// a config and a pure function of lists:
//
//   void lion_update(const ParameterLists& p, const LionConfig& c);
//   void Lion::setup(Session& session) { set_list_optimizer(session, config_, {{"lion.m", SlotKind::kGradient}}, lion_update); }
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "huajin/core/technique.h"

namespace huajin {

using Tensors = std::vector<Tensor>;

// All lists run in parallel: one entry a tensor.
struct ParameterLists {
  double rate = 0;     // learning rate times the schedule's factor
  int64_t step = 0;    // of this update, from 1: bias correction
  bool decays = true;  // weight decay applies to all of them (Reach::kAll: look at each parameter)
  std::vector<Parameter*> parameters;
  Tensors w;                   // values, to be changed in place
  Tensors g;                   // gradients: contiguous, zeros where none arrived. Not to be changed
  std::vector<Tensors> slots;  // [as declared][as w], to be changed in place

  double decay(double weight_decay) const { return decays ? weight_decay : 0; }
};

// How far an update sees; the frame may call it once for each part.
enum class Reach {
  kTensor,  // called with all tensors that decay, then with all that don't
  kAll      // called once, with everything
};

using SlotNames = std::vector<std::pair<std::string, SlotKind>>;

class ListOptimizer : public Optimizer {
 public:
  using Update = std::function<void(const ParameterLists&)>;
  // In setup() of a technique: declares the slots. `learning_rate` is multiplied by the schedule's factor.
  ListOptimizer(Session& session, double learning_rate, const SlotNames& slots, Update update, Reach reach = Reach::kTensor);
  void begin(const Step& step, double rate_factor) override;
  void step(std::span<Parameter* const> parameters) override;
  double learning_rate() const override { return rate_; }

 private:
  Session& session_;
  double base_rate_, rate_ = 0;
  int64_t step_ = 0;
  std::vector<std::string> slots_;
  Update update_;
  Reach reach_;
};

// Hands over an optimizer with the base rate `config.learning_rate`.
template <class Config>
void set_list_optimizer(Session& session, const Config& config, const SlotNames& slots, void (*update)(const ParameterLists&, const Config&)) {
  session.set_optimizer(std::make_unique<ListOptimizer>(session, config.learning_rate, slots,
                                                        [config, update](const ParameterLists& lists) { update(lists, config); }));
}

// Gradient of a parameter as an optimizer reads it: contiguous, zeros if none arrived.
Tensor gradient_or_zeros(const Parameter& p);

// ---- what the updates are made of, each for a list; on any device ---------------------------------------------------------
void update_mean(const Tensors& mean, const Tensors& x, double beta);           // mean <- beta mean + (1 - beta) x
void update_mean_square(const Tensors& mean, const Tensors& x, double beta);    // mean <- beta mean + (1 - beta) x^2
Tensors root(const Tensors& square, double divisor, double epsilon);            // sqrt(square / divisor) + epsilon
Tensors with_penalty(const Tensors& g, const Tensors& w, double weight_decay);  // g + weight_decay w; g itself if there is none
void shrink(const Tensors& w, double share);                                    // w <- (1 - share) w

}  // namespace huajin
