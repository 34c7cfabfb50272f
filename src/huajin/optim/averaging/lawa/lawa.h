// Latest weight averaging: the mean of the last k snapshots, taken at an interval. Kaddour, "Stop Wasting My Time! Saving Days of ImageNet and BERT
// Training with Latest Weight Averaging", arXiv 2209.14981, section 2.
#pragma once
#include <string>
#include <vector>

#include "huajin/optim/averaging/stand_in.h"

namespace huajin {

struct LawaConfig {
  int64_t snapshots = 5, every = 0;
  double interval = 0.02;
  StandInConfig stand_in{16};
  void fields(Fields& f) {
    f.integer("snapshots", snapshots, {.least = 1, .most = 100}, "in the mean, each a copy of the weights in memory; 1: the last snapshot");
    f.number("interval", interval, {.least = 0, .most = 1, .open = true}, "fraction of the budget between two snapshots; used if every is 0");
    f.integer("every", every, {.least = 0}, "updates between two snapshots; 0: from interval");
    stand_in.fields(f);
  }
};

// value <- mean of the snapshots, by s_1 + (s_2 - s_1) / 2 + ...: the snapshot itself if there is one.
void mean_of(Tensor& value, const std::vector<Tensor>& snapshots);

class Lawa : public Technique {
 public:
  explicit Lawa(const LawaConfig& config) : config_(config), stand_in_(config.stand_in) {}
  std::string_view name() const override { return "lawa"; }
  Needs needs() const override { return kMovesWeights; }
  void setup(Session& session) override;
  void after_step(Step& step) override;
  void evaluate(Session& session, FunctionRef<void()> next) override;
  void serialize(Archive& archive) override;

 private:
  std::string slot(int64_t i) const { return "lawa.snapshot" + std::to_string(i); }
  LawaConfig config_;
  StandIn stand_in_;
  double count_ = 0;   // snapshots taken so far; the next overwrites the oldest
  double passed_ = 0;  // intervals of the budget that have passed
};

}  // namespace huajin
