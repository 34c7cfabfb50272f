// GPT-2 (Radford et al., 2019): learned positions, LayerNorm before attention and MLP, GELU, tied head. Weights have the names and the layout of
// Hugging Face's GPT2LMHeadModel, whose config.json is Model::config_json.
#pragma once
#include <cstdint>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"

namespace huajin {

struct Gpt2Config {
  int64_t vocabulary = 50257, context = 1024;  // decided by the data, not by the recipe
  int64_t layers = 4, heads = 4, width = 128;
  int64_t hidden = 0;  // of the MLP; 0: 4 width
  double dropout = 0;  // of embeddings, attention's and MLP's output
  double epsilon = 1e-5;
  double init = 0.02;
  bool zero_output = false;
  void fields(Fields& f);
};

Model gpt2(const Gpt2Config& config);  // UserError for sizes that don't fit each other

}  // namespace huajin
