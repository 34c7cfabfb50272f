// Maximal update parametrization: initial deviations and rates that depend on the width, so that the best learning rate of a narrow model is the best of a wide
// one. Yang et al., "Tensor Programs V", arXiv 2203.03466, tables 3 and 8. Everything is relative to the same model at `base_width`, where nothing changes.
//
// a, b: ratios of fan-in and fan-out to the base model's. s = 1/a and 1/r: r, ratio of the head size.
//                                   initial deviation    rate, Adam    rate, SGD
//   input (a = 1), bias, norm             1               1             b
//   hidden                                a^-1/2          1/a           b/a
//   output (b = 1)                        1/a             1/a           1/a
// Deviations are relative to what the base model declares. Two multipliers are folded into weights, so that the model stays what its config.json says:
// scores q k / d instead of / sqrt(d): the query's weights and biases (with QK-norm: its gains) start r^-1/2 times as large, their rate is r^-1/2 (Adam) or
// 1/r (SGD) of the table's. 1/a on the input of a head that is tied to the embedding: gain and bias of the norm before it start s times as large, their
// rate is s (Adam) or s^2 (SGD) of the table's. A multiplier c on a weight is the same as a start of c and a rate of c (Adam) or c^2 (SGD); so the paper's
// tables 3, 8 and 9 are one parametrization.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct MupConfig {
  int64_t base_width = 64, base_heads = 0;
  void fields(Fields& f) {
    f.integer("base_width", base_width, {.least = 0, .most = 1 << 20}, "width whose initial weights and rates are the standard ones; 0, or the model's own: off");
    f.integer("base_heads", base_heads, {.least = 0, .most = 1 << 20}, "attention heads at that width; 0: as many as the model has");
  }
};

enum class MupRule { kAdam, kSgd };
// Of the recipe's optimizer, which is one of the techniques: kAdam, where an element moves by about the rate whatever the gradient's size. UserError for one
// without a rule.
MupRule mup_rule(const std::vector<std::string_view>& techniques);

struct WidthScale {  // one number, or one for each of equal parts along `dim` (GPT-2's fused query, key and value)
  std::vector<double> start{1}, rate{1};
  int dim = 0;
};
// By name, for each trainable weight. UserError: the models don't have the same weights, no width differs between models of different widths, or a
// multiplier has no weight to go into.
std::map<std::string, WidthScale> width_scales(Model& wide, Model& base, MupRule rule);

// Standard deviation of an element of a freshly made weight; 0 for zeros and constants.
double element_deviation(const Init& init, const std::vector<int64_t>& shape);

class Mup : public Technique {
 public:
  explicit Mup(const MupConfig& config) : config_(config) {}
  std::string_view name() const override { return "mup"; }
  Needs needs() const override { return kMovesWeights; }
  void setup(Session& session) override;
  void start(Session& session) override;
  void update(Step& step, FunctionRef<void()> next) override;

 private:
  MupConfig config_;
  std::map<std::string, WidthScale> scales_;
};

}  // namespace huajin
