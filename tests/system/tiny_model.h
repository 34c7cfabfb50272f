// A model, a data source and a run that every layout can train in a moment: dropout, an auxiliary term in the middle, a tied embedding, ragged masks.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "huajin/core/session.h"
#include "huajin/core/trainer.h"

namespace huajin {

constexpr int64_t kTinyVocabulary = 13, kTinyWidth = 6;

// embedding, `blocks` residual blocks, head tied to the embedding.
std::unique_ptr<Model> tiny_model(int blocks, double dropout = 0.2);

// Rows of 6 tokens, each a hash of its position; row i has counts[i % counts.size()] counted targets.
class TinySource : public Source {
 public:
  explicit TinySource(std::vector<int64_t> counts) : counts_(std::move(counts)) {}
  static constexpr int64_t kLength = 6;
  bool classifies() const override { return false; }
  int64_t size() const override { return 1200; }
  int64_t classes() const override { return kTinyVocabulary; }
  int64_t units_per_row(int64_t length) const override { return length; }
  Tensor ids(uint64_t seed, int64_t at, int64_t rows, int64_t length) const override;
  Examples load(const Tensor& ids, int64_t length, const Tensor& noise, int64_t draw, bool training) const override;

 private:
  std::vector<int64_t> counts_;
};

struct TinyRun {
  std::vector<std::unique_ptr<Technique>> techniques;
  SessionOptions options;
  std::vector<int64_t> counts{5, 1, 6, 3};
  int64_t rows = 7, steps = 10;
  int blocks = 3;
};

struct TinyOutcome {
  std::vector<double> losses, norms;
  std::vector<Tensor> weights;  // whole, float64, in the order of the table
};

// AdamW (or SGD with momentum), a constant rate, clipping.
std::vector<std::unique_ptr<Technique>> adamw_and_clip();
std::vector<std::unique_ptr<Technique>> sgd_and_clip();
// SAM and an average of the weights around AdamW.
std::vector<std::unique_ptr<Technique>> sam_ema_adamw_and_clip();

// `prepare` sees the session before it is built, `finished` after the last step; weights are taken as the session holds them.
TinyOutcome train_tiny(TinyRun run, std::shared_ptr<Communicator> communicator, const std::function<void(RunSession&)>& finished = nullptr);

// Greatest absolute difference of losses, norms and weights.
struct TinyDifference {
  double loss = 0, norm = 0, weights = 0;
};
TinyDifference difference(const TinyOutcome& a, const TinyOutcome& b);

}  // namespace huajin
