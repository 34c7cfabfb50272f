#include "huajin/zoo/gpt2.h"

#include <ATen/TensorOperators.h>

#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/zoo/attention.h"
#include "huajin/zoo/fused.h"
#include "huajin/zoo/layers.h"

namespace huajin {
namespace {

struct Gpt2Embedding : Layer {
  explicit Gpt2Embedding(const Gpt2Config& c) : config(c) {}
  const Gpt2Config config;
  Part<> wte{this, "wte", make<Embedding>(config.vocabulary, config.width, normal(config.init))};
  // Role kBias: a table of positions is neither decayed nor a hidden matrix.
  Weight wpe{this, "wpe.weight", {config.context, config.width}, {.init = normal(config.init), .role = Role::kBias}};

  Tensor forward(Forward& f, const Tensor& ids) const override {
    const int64_t length = ids.size(1);
    if (f.position + length > config.context)
      throw UserError("gpt2: position " + std::to_string(f.position + length) + " is past the context of " + std::to_string(config.context) +
                      " tokens that the model was built for");
    return f.dropout(wte(f, ids) + f[wpe].narrow(0, f.position, length), config.dropout, *this, 0, false);
  }
};

struct Gpt2Attention : Layer {
  explicit Gpt2Attention(const Gpt2Config& c) : config(c) {}
  const Gpt2Config config;
  Part<> c_attn{this, "c_attn",
                Linear::columns(config.width, 3 * config.width, {.bias = true, .transposed = true, .init = normal(config.init), .parts = 3})};
  Part<> c_proj{this, "c_proj",
                Linear::rows(config.width, config.width,
                             {.bias = true, .transposed = true, .init = residual_init(config.init, config.layers, config.zero_output)})};

  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor qkv = c_attn(f, x);  // [B, T, 3 D]
    const auto split = qkv.view({x.size(0), x.size(1), 3, -1, config.width / config.heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    return c_proj(f, merge_heads(causal_attention(f, *this, split[0], split[1], split[2])));
  }
  double extra_flops(int64_t length) const override { return attention_flops(length, config.width); }
};

struct Gpt2Mlp : Layer {
  explicit Gpt2Mlp(const Gpt2Config& c) : config(c) {}
  const Gpt2Config config;
  Part<> c_fc{this, "c_fc", Linear::columns(config.width, config.hidden, {.bias = true, .transposed = true, .init = normal(config.init)})};
  Part<> c_proj{this, "c_proj",
                Linear::rows(config.hidden, config.width,
                             {.bias = true, .transposed = true, .init = residual_init(config.init, config.layers, config.zero_output)})};

  Tensor forward(Forward& f, const Tensor& x) const override { return c_proj(f, fused::gelu_tanh(c_fc(f, x))); }
};

struct Gpt2Block : Layer {
  explicit Gpt2Block(const Gpt2Config& c) : config(c) {}
  const Gpt2Config config;
  Part<> ln_1{this, "ln_1", make<LayerNorm>(config.width, config.epsilon)};
  Part<> attn{this, "attn", make<Gpt2Attention>(config)};
  Part<> ln_2{this, "ln_2", make<LayerNorm>(config.width, config.epsilon)};
  Part<> mlp{this, "mlp", make<Gpt2Mlp>(config)};

  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor h = x + f.dropout(attn(f, ln_1(f, x)), config.dropout, *this, 0, false);
    return h + f.dropout(mlp(f, ln_2(f, h)), config.dropout, *this, 1, false);
  }
};

std::string gpt2_json(const Gpt2Config& c) {
  const Json json{{"model_type", "gpt2"},
                  {"architectures", {"GPT2LMHeadModel"}},
                  {"vocab_size", c.vocabulary},
                  {"n_positions", c.context},
                  {"n_embd", c.width},
                  {"n_layer", c.layers},
                  {"n_head", c.heads},
                  {"n_inner", c.hidden},
                  {"activation_function", "gelu_new"},
                  {"layer_norm_epsilon", c.epsilon},
                  {"initializer_range", c.init},
                  {"embd_pdrop", c.dropout},
                  {"resid_pdrop", c.dropout},
                  {"attn_pdrop", 0.0},
                  {"bos_token_id", nullptr},
                  {"eos_token_id", nullptr},
                  {"tie_word_embeddings", true}};
  return json_text(json, 2);
}

}  // namespace

void Gpt2Config::fields(Fields& f) {
  f.integer("layers", layers, {.least = 1, .most = 1024}, "number of blocks");
  f.integer("heads", heads, {.least = 1, .most = 1 << 20}, "attention heads; divides width");
  f.integer("width", width, {.least = 2, .most = 1 << 20}, "size of the residual stream");
  f.integer("hidden", hidden, {.least = 0, .most = 1 << 20}, "width of the MLP; 0: four times the model's");
  f.number("dropout", dropout, {.least = 0, .most = 1, .open_most = true},
           "share of the activations set to zero, after embedding, attention and MLP");
  f.number("init", init, {.least = 0, .open = true}, "standard deviation of initial weights; output projections get it divided by sqrt(2 layers)");
  f.flag("zero_output", zero_output, "start with output projections of zero: each block begins as the identity");
}

Model gpt2(const Gpt2Config& given) {
  Gpt2Config c = given;
  if (c.hidden == 0) c.hidden = 4 * c.width;
  check_heads("model gpt2", c.width, c.heads, c.heads);
  Model m;
  m.add("transformer", make<Gpt2Embedding>(c));
  for (int64_t l = 0; l < c.layers; ++l) m.add("transformer.h." + std::to_string(l), make<Gpt2Block>(c));
  m.add("transformer.ln_f", make<LayerNorm>(c.width, c.epsilon));
  m.add("lm_head", Linear::columns(c.width, c.vocabulary, {.init = normal(c.init), .role = Role::kHead}));
  m.tie("lm_head.weight", "transformer.wte.weight");
  m.context = c.context;
  m.config_json = gpt2_json(c);
  return m;
}

}  // namespace huajin
