// What averages of the weights share: they stand in for the weights while something is evaluated, and where the model has running statistics
// (BatchNorm), these are estimated anew for them. Izmailov et al., "Averaging Weights Leads to Wider Optima", UAI 2018, section 3.2.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct StandInConfig {
  int64_t statistics;  // batches
  void fields(Fields& f) {
    f.integer("statistics", statistics, {.least = 0, .most = 10000},
              "batches of training data from which running statistics (BatchNorm) are estimated anew for an evaluation; 0: as training left them");
  }
};

class StandIn {
 public:
  explicit StandIn(const StandInConfig& config) : config_(config) {}
  // In after_step: what a batch of this run looks like.
  void see(const Step& step);
  // In evaluate. put(parameter, value) overwrites the value; it comes back bit for bit, also if next() throws. `ready` false: there is no average yet,
  // and the weights stay; statistics are estimated for them all the same, so that what an evaluation costs doesn't change in the middle of a run.
  void evaluate(Session& session, bool ready, FunctionRef<void(const Parameter&, Tensor& value)> put, FunctionRef<void()> next) const;
  void serialize(Archive& archive);

 private:
  StandInConfig config_;
  double rows_ = 0, length_ = 0;
};

// Weights of all parameters and, in the same order, their tensors of a slot.
struct WeightsAndSlot {
  std::vector<Tensor> weights, slot;
};
WeightsAndSlot weights_and_slot(Session& session, std::string_view slot);

}  // namespace huajin
