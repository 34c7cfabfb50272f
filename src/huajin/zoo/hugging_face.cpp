#include "huajin/zoo/hugging_face.h"

#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/io/file.h"
#include "huajin/io/json.h"
#include "huajin/zoo/gpt2.h"
#include "huajin/zoo/llama.h"
#include "huajin/zoo/vit.h"

namespace huajin {
namespace {

// One config.json: every value is checked for type and range before it is used; null counts as absent.
class Config {
 public:
  Config(std::string_view text, std::string where) : json_(parse_json(text, where, {.bytes = 16 << 20})), where_(std::move(where)) {
    if (!json_.is_object()) throw DamagedError(where_ + ": a model's configuration is a JSON object");
  }
  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  std::string text(const char* key, const char* otherwise) const { return has(key) ? string_member(json_, key, where_) : otherwise; }
  bool flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!json_.at(key).is_boolean()) throw DamagedError(where_ + ": " + key + " must be true or false");
    return json_.at(key).get<bool>();
  }
  int64_t size(const char* key) const { return checked(key, integer_member(json_, key, where_)); }
  int64_t size(const char* key, int64_t otherwise) const { return has(key) ? size(key) : otherwise; }
  double number(const char* key, double otherwise) const { return has(key) ? number_member(json_, key, where_) : otherwise; }
  double fraction(const char* key, double otherwise) const {
    const double value = number(key, otherwise);
    if (!(value >= 0 && value < 1)) throw DamagedError(where_ + ": " + key + " = " + std::to_string(value) + " must be in [0, 1)");
    return value;
  }
  // UserError unless `key` is absent or has this value.
  template <class Value>
  void only(const char* key, const Value& value) const {
    if (has(key) && json_.at(key) != Json(value))
      refuse(std::string(key) + " = " + json_text(json_.at(key)) + "; huajin computes only " + json_text(Json(value)));
  }
  [[noreturn]] void refuse(const std::string& what) const { throw UserError(where_ + ": " + what); }
  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }

 private:
  int64_t checked(const char* key, int64_t value) const {
    if (value < 1 || value > int64_t{1} << 24) throw DamagedError(where_ + ": " + key + " = " + std::to_string(value) + " must be in 1 to 16777216");
    return value;
  }
  Json json_;
  std::string where_;
};

Model gpt2_of(const Config& c) {
  const std::string activation = c.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    c.refuse("activation_function = " + activation + "; huajin computes only gelu_new");
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) c.only(key, false);
  c.only("scale_attn_weights", true);
  c.only("tie_word_embeddings", true);
  Gpt2Config config;
  config.vocabulary = c.size("vocab_size", 50257);
  config.context = c.size("n_positions", 1024);
  config.width = c.size("n_embd", 768);
  config.layers = c.size("n_layer", 12);
  config.heads = c.size("n_head", 12);
  config.hidden = c.size("n_inner", 4 * config.width);
  config.epsilon = c.number("layer_norm_epsilon", 1e-5);
  config.dropout = c.fraction("resid_pdrop", 0);
  return gpt2(config);
}

double rope_base(const Config& c) {
  double base = c.number("rope_theta", 10000);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!c.has(key)) continue;
    const Json& rope = c.json().at(key);
    if (!rope.is_object()) throw DamagedError(c.where() + ": " + key + " must be an object");
    for (const char* type : {"rope_type", "type"})
      if (rope.contains(type) && rope.at(type) != "default")
        c.refuse(std::string(key) + ": " + type + " = " + json_text(rope.at(type)) + "; huajin computes only \"default\"");
    if (rope.contains("rope_theta")) base = number_member(rope, "rope_theta", c.where());
  }
  if (!(base > 1 && base < 1e12)) throw DamagedError(c.where() + ": rope_theta = " + std::to_string(base) + " must be above 1");
  return base;
}

Model llama_of(const Config& c, bool qk_norm, const char* activation) {
  c.only("hidden_act", activation);
  for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"}) c.only(key, false);
  LlamaConfig config;
  config.activation = activation;
  config.qk_norm = qk_norm;
  config.vocabulary = c.size("vocab_size");
  config.context = c.size("max_position_embeddings", 2048);
  config.width = c.size("hidden_size");
  config.layers = c.size("num_hidden_layers");
  config.heads = c.size("num_attention_heads");
  config.kv_heads = c.size("num_key_value_heads", config.heads);
  config.head_size = c.size("head_dim", qk_norm && std::string_view(activation) == "silu" ? 128 : config.width / config.heads);
  config.hidden = c.size("intermediate_size");
  config.epsilon = c.number("rms_norm_eps", 1e-6);
  config.rope_base = rope_base(c);
  config.tied = c.flag("tie_word_embeddings", false);
  return llama(config);
}

Model vit_of(const Config& c) {
  c.only("hidden_act", "gelu");
  c.only("qkv_bias", true);
  VitConfig config;
  config.classes = 2;  // as transformers: two labels unless others are named
  if (c.has("id2label")) {
    if (!c.json().at("id2label").is_object() || c.json().at("id2label").empty())
      throw DamagedError(c.where() + ": id2label must be an object that names the classes");
    config.classes = static_cast<int64_t>(c.json().at("id2label").size());
  }
  config.classes = c.size("num_labels", config.classes);
  config.channels = c.size("num_channels", 3);
  config.size = c.size("image_size", 224);
  config.patch = c.size("patch_size", 16);
  config.width = c.size("hidden_size", 768);
  config.layers = c.size("num_hidden_layers", 12);
  config.heads = c.size("num_attention_heads", 12);
  config.hidden = c.size("intermediate_size", 3072);
  config.epsilon = c.number("layer_norm_eps", 1e-12);
  config.dropout = c.fraction("hidden_dropout_prob", 0);
  return vit(config);
}

}  // namespace

Model model_of_config(std::string_view text, const std::string& where) {
  const Config config(text, where);
  const std::string type = string_member(config.json(), "model_type", where);
  if (type == "gpt2") return gpt2_of(config);
  if (type == "llama") return llama_of(config, false, "silu");
  if (type == "qwen3") return llama_of(config, true, "silu");
  if (type == "huajin_llama_relu2") return llama_of(config, config.flag("qk_norm", false), "relu2");
  if (type == "vit") return vit_of(config);
  config.refuse("model_type = \"" + type + "\" is not known; huajin reads gpt2, llama, qwen3, vit and its own huajin_llama_relu2");
}

Model model_of_folder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (!exists(path)) throw UserError(folder + ": no config.json; a Hugging Face model is a folder with config.json and model.safetensors");
  return model_of_config(read_file(path, 16 << 20), path);
}

}  // namespace huajin
