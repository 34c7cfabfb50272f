#include "huajin/zoo/llama.h"

#include <ATen/TensorOperators.h>

#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/zoo/attention.h"
#include "huajin/zoo/fused.h"
#include "huajin/zoo/layers.h"

namespace huajin {
namespace {

Linear::Options hidden_layer(const LlamaConfig& c) { return {.init = normal(c.init)}; }
Linear::Options output_layer(const LlamaConfig& c) { return {.init = residual_init(c.init, c.layers, c.zero_output)}; }

struct LlamaAttention : Layer {
  explicit LlamaAttention(const LlamaConfig& c) : config(c) {
    if (!c.qk_norm) return;
    q_norm = make<Part<RmsNorm>>(this, "q_norm", make<RmsNorm>(c.head_size, c.epsilon, true));
    k_norm = make<Part<RmsNorm>>(this, "k_norm", make<RmsNorm>(c.head_size, c.epsilon, true));
  }
  const LlamaConfig config;
  Part<> q_proj{this, "q_proj", Linear::columns(config.width, config.heads* config.head_size, hidden_layer(config))};
  Part<> k_proj{this, "k_proj", Linear::columns(config.width, config.kv_heads* config.head_size, hidden_layer(config))};
  Part<> v_proj{this, "v_proj", Linear::columns(config.width, config.kv_heads* config.head_size, hidden_layer(config))};
  Part<> o_proj{this, "o_proj", Linear::rows(config.heads* config.head_size, config.width, output_layer(config))};
  std::unique_ptr<Part<RmsNorm>> q_norm, k_norm;

  Tensor rotated(Forward& f, const Tensor& x_BTD, const Part<RmsNorm>* norm) const {
    return rotate_heads(x_BTD, config.head_size, norm ? f[(*norm)->weight()] : Tensor(), config.epsilon, f.position, config.rope_base);
  }
  Tensor forward(Forward& f, const Tensor& x_BTD) const override {
    const Tensor q_BHTK = rotated(f, q_proj(f, x_BTD), q_norm.get()), k_BGTK = rotated(f, k_proj(f, x_BTD), k_norm.get());
    const Tensor v_BGTK = split_heads(v_proj(f, x_BTD), config.head_size);
    return o_proj(f, merge_heads(causal_attention(f, *this, q_BHTK, k_BGTK, v_BGTK)));
  }
  double extra_flops(int64_t length) const override { return attention_flops(length, config.heads * config.head_size); }
};

struct LlamaMlp : Layer {  // down(silu(gate x) * up x)
  explicit LlamaMlp(const LlamaConfig& c) : config(c) {}
  const LlamaConfig config;
  Part<> gate_proj{this, "gate_proj", Linear::columns(config.width, config.hidden, hidden_layer(config))};
  Part<> up_proj{this, "up_proj", Linear::columns(config.width, config.hidden, hidden_layer(config))};
  Part<> down_proj{this, "down_proj", Linear::rows(config.hidden, config.width, output_layer(config))};
  Tensor forward(Forward& f, const Tensor& x) const override { return down_proj(f, fused::gated_silu(gate_proj(f, x), up_proj(f, x))); }
};

struct ReluSquaredMlp : Layer {  // down(relu(up x)^2)
  explicit ReluSquaredMlp(const LlamaConfig& c) : config(c) {}
  const LlamaConfig config;
  Part<> up_proj{this, "up_proj", Linear::columns(config.width, config.hidden, hidden_layer(config))};
  Part<> down_proj{this, "down_proj", Linear::rows(config.hidden, config.width, output_layer(config))};
  Tensor forward(Forward& f, const Tensor& x) const override { return down_proj(f, fused::relu_squared(up_proj(f, x))); }
};

std::unique_ptr<Layer> llama_mlp(const LlamaConfig& c) {
  if (c.activation == "relu2") return make<ReluSquaredMlp>(c);
  return make<LlamaMlp>(c);
}

struct LlamaBlock : Layer {
  explicit LlamaBlock(const LlamaConfig& c) : config(c) {}
  const LlamaConfig config;
  Part<> input_layernorm{this, "input_layernorm", make<RmsNorm>(config.width, config.epsilon)};
  Part<> self_attn{this, "self_attn", make<LlamaAttention>(config)};
  Part<> post_attention_layernorm{this, "post_attention_layernorm", make<RmsNorm>(config.width, config.epsilon)};
  Part<> mlp{this, "mlp", llama_mlp(config)};

  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor h = x + f.dropout(self_attn(f, input_layernorm(f, x)), config.dropout, *this, 0, false);
    return h + f.dropout(mlp(f, post_attention_layernorm(f, h)), config.dropout, *this, 1, false);
  }
};

std::string llama_json(const LlamaConfig& c) {
  Json json{{"model_type", c.qk_norm ? "qwen3" : "llama"},
            {"architectures", {c.qk_norm ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
            {"vocab_size", c.vocabulary},
            {"max_position_embeddings", c.context},
            {"hidden_size", c.width},
            {"intermediate_size", c.hidden},
            {"num_hidden_layers", c.layers},
            {"num_attention_heads", c.heads},
            {"num_key_value_heads", c.kv_heads},
            {"head_dim", c.head_size},
            {"hidden_act", "silu"},
            {"rms_norm_eps", c.epsilon},
            {"rope_theta", c.rope_base},
            {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", c.rope_base}}},
            {"initializer_range", c.init},
            {"attention_bias", false},
            {"attention_dropout", 0.0},
            {"mlp_bias", false},
            {"bos_token_id", nullptr},
            {"eos_token_id", nullptr},
            {"tie_word_embeddings", c.tied}};
  if (c.activation == "relu2") {
    json["model_type"] = "huajin_llama_relu2";
    json["architectures"] = Json::array();
    json["hidden_act"] = "relu2";
    json["qk_norm"] = c.qk_norm;
    json["note"] = "MLP without a gate: no class of transformers computes this. Train with model.activation = silu for one that loads there.";
  }
  return json_text(json, 2);
}

LlamaConfig with_defaults(LlamaConfig c) {
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.head_size == 0) {
    check_heads("model llama", c.width, c.heads, c.kv_heads);
    c.head_size = c.width / c.heads;
  }
  check_heads("model llama", c.heads * c.head_size, c.heads, c.kv_heads);
  if (c.hidden == 0) c.hidden = c.activation == "relu2" ? 4 * c.width : (8 * c.width / 3 + 31) / 32 * 32;
  return c;
}

}  // namespace

void LlamaConfig::fields(Fields& f) {
  f.integer("layers", layers, {.least = 1, .most = 1024}, "number of blocks");
  f.integer("heads", heads, {.least = 1, .most = 1 << 20}, "attention heads; divides width");
  f.integer("width", width, {.least = 2, .most = 1 << 20}, "size of the residual stream");
  f.integer("kv_heads", kv_heads, {.least = 0, .most = 1 << 20}, "heads of keys and values, divides heads; 0: as many as heads");
  f.integer("head_size", head_size, {.least = 0, .most = 1 << 20}, "numbers a head, even; 0: width / heads");
  f.integer("hidden", hidden, {.least = 0, .most = 1 << 20}, "width of the MLP; 0: 8/3 of the model's for silu, 4 times for relu2");
  f.number("rope_base", rope_base, {.least = 1, .open = true}, "base of the rotary angles");
  f.text("activation", activation, {"silu", "relu2"},
         "silu: gated MLP, loads in transformers; relu2: squared ReLU without a gate, faster in small models");
  f.flag("qk_norm", qk_norm, "RMSNorm of every query and key head (Qwen3)");
  f.flag("tied", tied, "the head multiplies with the embedding's table");
  f.number("dropout", dropout, {.least = 0, .most = 1, .open_most = true}, "share of the activations set to zero, after attention and MLP");
  f.number("init", init, {.least = 0, .open = true}, "standard deviation of initial weights; output projections get it divided by sqrt(2 layers)");
  f.flag("zero_output", zero_output, "start with output projections of zero: each block begins as the identity");
}

Model llama(const LlamaConfig& given) {
  const LlamaConfig c = with_defaults(given);
  Model m;
  m.add("model.embed_tokens", make<Embedding>(c.vocabulary, c.width, normal(c.init)));
  for (int64_t l = 0; l < c.layers; ++l) m.add("model.layers." + std::to_string(l), make<LlamaBlock>(c));
  m.add("model.norm", make<RmsNorm>(c.width, c.epsilon));
  m.add("lm_head", Linear::columns(c.width, c.vocabulary, {.init = normal(c.init), .role = Role::kHead}));
  if (c.tied) m.tie("lm_head.weight", "model.embed_tokens.weight");
  m.context = c.context;
  m.config_json = llama_json(c);
  return m;
}

}  // namespace huajin
