// Lookahead: every k updates the slow weights go part of the way to the fast ones, and the fast ones go on from there. Zhang et al., "Lookahead
// Optimizer: k steps forward, 1 step back", NeurIPS 2019 (arXiv 1907.08610), algorithm 1.
#pragma once
#include <vector>

#include "huajin/optim/averaging/stand_in.h"

namespace huajin {

struct LookaheadConfig {
  int64_t every = 5;
  double share = 0.5;
  StandInConfig stand_in{0};
  void fields(Fields& f) {
    f.integer("every", every, {.least = 1}, "updates between two pulls (k)");
    f.number("share", share, {.least = 0, .most = 1, .open = true}, "of the way from the slow to the fast weights (alpha); 1: off");
    stand_in.fields(f);
  }
};

// slow <- slow + share (fast - slow), fast <- slow
void lookahead_pull(const std::vector<Tensor>& slow, const std::vector<Tensor>& fast, double share);

class Lookahead : public Technique {
 public:
  explicit Lookahead(const LookaheadConfig& config) : config_(config), stand_in_(config.stand_in) {}
  std::string_view name() const override { return "lookahead"; }
  Needs needs() const override { return kMovesWeights; }
  void setup(Session& session) override { session.declare_slot("lookahead.slow", SlotKind::kValue); }
  void update(Step& step, FunctionRef<void()> next) override;
  // The slow weights stand in: algorithm 1 returns them.
  void evaluate(Session& session, FunctionRef<void()> next) override;
  void serialize(Archive& archive) override { stand_in_.serialize(archive); }

 private:
  LookaheadConfig config_;
  StandIn stand_in_;
};

}  // namespace huajin
