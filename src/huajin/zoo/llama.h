// Llama (Touvron et al., 2023): RMSNorm, rotary positions, grouped-query heads, gated MLP. With qk_norm it is Qwen3's block (RMSNorm of each query's
// and key's head before the rotation). Weights have the names of Hugging Face's LlamaForCausalLM and Qwen3ForCausalLM; Model::config_json is theirs.
// With activation relu2 the MLP is not gated (So et al., 2021): fewer and larger products for small models, but no class of transformers loads it,
// and config_json says so.
#pragma once
#include <cstdint>
#include <string>

#include "huajin/core/model.h"
#include "huajin/core/settings.h"

namespace huajin {

struct LlamaConfig {
  int64_t vocabulary = 32000, context = 1024;  // decided by the data, not by the recipe
  int64_t layers = 4, heads = 4, width = 128;
  int64_t kv_heads = 0;   // 0: heads
  int64_t head_size = 0;  // 0: width / heads
  int64_t hidden = 0;     // of the MLP; 0: 8/3 width rounded up to 32 for silu, 4 width for relu2
  double rope_base = 10000;
  double epsilon = 1e-5;
  std::string activation = "silu";  // silu: gated; relu2
  bool qk_norm = false;
  bool tied = true;
  double dropout = 0;
  double init = 0.02;
  bool zero_output = false;
  void fields(Fields& f);
};

Model llama(const LlamaConfig& config);  // UserError for sizes that don't fit each other

}  // namespace huajin
