// Initial weights by a law. n_in, n_out: fans (initialization/fans.h); g: gain.
//   xavier       deviation g sqrt(2 / (n_in + n_out))   g = 1        Glorot & Bengio, AISTATS 2010, equation 16
//   kaiming      deviation g / sqrt(n_in)               g = sqrt(2)  He et al., arXiv 1502.01852, equation 10
//   kaiming_out  deviation g / sqrt(n_out)              g = sqrt(2)  ibid., equation 14
//   orthogonal   orthonormal rows or columns, times g   g = 1        Saxe et al., arXiv 1312.6120
// uniform: in (-sqrt(3) deviation, sqrt(3) deviation).
#pragma once
#include <string>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/model/initialization/fans.h"

namespace huajin {

struct InitializerConfig {
  std::string law = "kaiming", shape = "normal";
  double gain = 0;
  void fields(Fields& f) {
    f.text("law", law, {"declared", "xavier", "kaiming", "kaiming_out", "orthogonal"}, "how large initial weights are; declared: as the model has it (off)");
    f.text("shape", shape, {"normal", "uniform"}, "of the distribution; orthogonal: ignored");
    f.number("gain", gain, {.least = 0}, "factor; 0: the law's own, sqrt(2) for kaiming (what a ReLU loses), 1 for the others");
  }
};

// What a weight with these fans starts with. `config.law` is not "declared".
Init init_by_law(const InitializerConfig& config, const Fans& fans);

// Matrices and convolutions of hidden layers; those that the model starts at zero stay at zero, embeddings and the head as they are.
class Initializer : public Technique {
 public:
  explicit Initializer(const InitializerConfig& config) : config_(config) {}
  std::string_view name() const override { return "initializer"; }
  void setup(Session& session) override;  // UserError: nothing to act on

 private:
  InitializerConfig config_;
};

}  // namespace huajin
