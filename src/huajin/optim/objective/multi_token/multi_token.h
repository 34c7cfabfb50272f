// Multi-token prediction. Gloeckle et al., "Better & Faster Large Language Models via Multi-token Prediction", ICML 2024 (arXiv 2404.19737), equation 2: at each
// position the next token and those after it are predicted from one trunk and through one output matrix, by a head each. A further head is here a block that
// Cai et al., "Medusa", ICML 2024 (arXiv 2401.10774), section 2.1.1, use, in place of a whole layer:
//   hidden_k = hidden + SiLU(W_k hidden),   W_k [D, D] zero at first, so that it begins as the first head
//   loss = CE(head(hidden)_t, token_t+1) + weight x sum_k CE(head(hidden_k)_t, token_t+1+k),   k = 1 .. tokens - 1
#pragma once
#include <string>
#include <vector>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct MultiTokenConfig {
  int64_t tokens = 2;
  double weight = 0.3;
  void fields(Fields& f) {
    f.integer("tokens", tokens, {.least = 1, .most = 16}, "predicted at each position, the next one among them; 1: off");
    f.number("weight", weight, {.least = 0, .open = true}, "of each further token's loss");
  }
};

// hidden + SiLU(W hidden).
Tensor multi_token_hidden(const Tensor& hidden, const Tensor& w);
// Weighted sum of CE(logits[:, t], targets[:, t + ahead]) over t < T - ahead, [] ; mask x weight of the item that is predicted, as in the data term.
Tensor multi_token_sum(const Logits& logits, const Examples& in, int64_t ahead);

// The heads' matrices are weights of the head's block. Evaluation, generation and the data term see the first head alone.
class MultiToken : public Technique {
 public:
  explicit MultiToken(const MultiTokenConfig& config) : config_(config) {}
  std::string_view name() const override { return "multi_token"; }
  void setup(Session& session) override;
  Loss loss(const Outputs& out, const Examples& in, FunctionRef<Loss(const Outputs&, const Examples&)> next) const override;

 private:
  MultiTokenConfig config_;
  std::vector<std::string> weights_;  // names of W_1, W_2, ...
};

}  // namespace huajin
