// Progressive stacking. Gong et al., "Efficient Training of BERT by Progressively Stacking", ICML 2019, algorithm 1: train a shallow model, copy its
// layers on top of themselves, go on. Optimizer state, averages and all other slots are copied with the weights.
#pragma once
#include <memory>
#include <string>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct StackingConfig {
  int64_t doublings = 1;
  double until = 0.5;
  void fields(Fields& f) {
    f.integer("doublings", doublings, {.least = 0, .most = 16}, "times that the depth doubles; training starts with layers / 2^doublings; 0: off");
    f.number("until", until, {.least = 0, .most = 1, .open = true, .open_most = true},
             "fraction of the budget by which the model is whole; doublings are spread evenly before");
  }
};

// The repeated part of a model: blocks PREFIX.0, PREFIX.1, ... next to each other.
struct Stack {
  std::string prefix;
  int64_t depth = 0;
};
Stack find_stack(const Model& model);
// Removes the blocks from `depth` on, and says so in the model's config.
void cut_stack(Model& model, const Stack& stack, int64_t depth);
// Where a weight of the deeper model starts: layer i >= depth is a copy of layer i mod depth.
std::string stacked_source(const std::string& name, const std::string& prefix, int64_t depth);
// Doublings that are due at this fraction: the j-th of n (from 1) at until j / n.
int64_t doublings_due(const StackingConfig& config, double fraction);

class Stacking : public Technique {
 public:
  explicit Stacking(const StackingConfig& config) : config_(config) {}
  std::string_view name() const override { return "stacking"; }
  Needs needs() const override { return kChangesModel; }
  void setup(Session& session) override;  // UserError: no repeated layers, or a depth that can't be halved so often
  void after_step(Step& step) override;
  void serialize(Archive& archive) override;  // reading a checkpoint of another depth rebuilds to it

 private:
  void resize(int64_t depth);
  StackingConfig config_;
  Session* session_ = nullptr;
  Stack whole_;
  int64_t depth_ = 0;
};

}  // namespace huajin
