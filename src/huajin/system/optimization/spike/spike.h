// A step whose loss is far above the latest ones is not made. After several in a row the run goes back to its newest checkpoint and, because batches are never
// drawn twice, past the data that did it: what Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022 (arXiv 2204.02311), section 5.1, did by
// hand. Far: more than `deviations` standard deviations above the mean of the last `window` losses (z-score).
#pragma once
#include <string>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct SpikeConfig {
  double deviations = 6;
  int64_t window = 64, most = 3;
  std::string then = "accept";
  void fields(Fields& f) {
    f.number("deviations", deviations, {.least = 0}, "standard deviations above the mean from which a loss is a spike; 0: off");
    f.integer("window", window, {.least = 2, .most = 1 << 20}, "losses of so many updates that are compared with; until there are so many, none is a spike");
    f.integer("most", most, {.least = 1}, "so many spikes in a row aren't skipped any more");
    f.text("then", then, {"accept", "roll_back"}, "what happens then: take the loss as the new level, or go back to the newest checkpoint");
  }
};

// (loss - mean) / standard deviation of these losses [n], n >= 2, unbiased; 0 if the loss is not above the mean, infinite if it is and they are all equal.
double z_score(double loss, const Tensor& losses);

// Outermost of all passes it sees the loss of the step's first pass. Its window is that of updates made: a step that is skipped for another reason is not in it.
class Spike : public Technique {
 public:
  explicit Spike(const SpikeConfig& config);
  std::string_view name() const override { return "spike"; }
  bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override;
  void after_step(Step& step) override;
  void serialize(Archive& archive) override;

 private:
  SpikeConfig config_;
  Tensor losses_;        // [window] float64, a ring
  int64_t seen_ = 0;     // losses that were ever put into it
  int64_t in_a_row_ = 0;
};

}  // namespace huajin
