// Importance sampling of examples, unbiased. Katharopoulos & Fleuret, "Not All Samples Are Created Equal: Deep Learning with Importance Sampling",
// ICML 2018, algorithm 1: score B candidates by a bound of their gradient's norm, draw b of them with probability p_i, weigh each by 1 / (B p_i).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct ImportanceSamplingConfig {
  int64_t presample = 3;
  double threshold = 0, uniform = 0.1, memory = 0.9;
  void fields(Fields& f) {
    f.integer("presample", presample, {.least = 1, .most = 64}, "candidates for each row that is kept; 1: off");
    f.number("threshold", threshold, {.least = 0},
             "least variance gain for which candidates are scored; 0: what scoring costs, (presample + 3) / 3; 1: always");
    f.number("uniform", uniform, {.least = 0, .most = 1, .open = true}, "share of the probability that is uniform: bounds weights by 1 / uniform");
    f.number("memory", memory, {.least = 0, .most = 1, .open_most = true}, "share of the old estimate that the running variance gain keeps a step");
  }
};

// [B] or [B, T] losses (nats) -> [B]: mean over items of 1 - exp(-loss). For softmax and cross-entropy the norm of the last layer's gradient,
// |softmax - one-hot|, lies between this and sqrt(2) times it, so nothing but the loss is needed.
Tensor importance_scores(const Tensor& losses);
// [B] float64, sums to one, at least uniform / B.
Tensor importance_probabilities(const Tensor& scores, double uniform);
// sqrt(B sum p_i^2): by how much a batch drawn with p is worth more rows (section 3.3). One for uniform p.
double variance_gain(const Tensor& probabilities);
// `many` independent draws with replacement: [many] int64. Pure function of the key.
Tensor draw_rows(const Tensor& probabilities, int64_t many, uint64_t key);
// The index of these rows; a row that comes again gets a random stream of its own.
Batch select_rows(const Batch& batch, const Tensor& rows);

class ImportanceSampling : public Technique {
 public:
  explicit ImportanceSampling(const ImportanceSamplingConfig& config) : config_(config) {}
  std::string_view name() const override { return "importance_sampling"; }
  Needs needs() const override { return kExampleLosses; }
  void on_draw(Draw& draw, const Progress&) const override { draw.candidates *= config_.presample; }
  void on_batch(Step& step) override;
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override;
  void after_step(Step& step) override;  // a step with uniform rows tells as well what the gain would have been
  void serialize(Archive& archive) override { archive.number("gain", gain_); }

 private:
  ImportanceSamplingConfig config_;
  double gain_ = 0;  // running mean; 0: none yet
  double seen_ = 0;  // in the step in hand
};

}  // namespace huajin
