#include "huajin/zoo/vit.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/zoo/attention.h"
#include "huajin/zoo/convolution.h"
#include "huajin/zoo/layers.h"

namespace huajin {
namespace {

int64_t vit_tokens(const VitConfig& c) { return (c.size / c.patch) * (c.size / c.patch) + 1; }

// Operations of a matrix [in, out] for the tokens beyond the first: Model::flops_per_row counts images as one position.
double more_tokens(const VitConfig& c, double numbers) { return 2.0 * numbers * static_cast<double>(vit_tokens(c) - 1); }

struct VitEmbeddings : Layer {
  explicit VitEmbeddings(const VitConfig& c) : config(c) {}
  const VitConfig config;
  Weight cls_token{this, "cls_token", {1, 1, config.width}, {.init = normal(config.init), .role = Role::kBias}};
  Weight positions{this, "position_embeddings", {1, vit_tokens(config), config.width}, {.init = normal(config.init), .role = Role::kBias}};
  Part<> projection{
      this, "patch_embeddings.projection",
      make<Conv2d>(
          config.channels, config.width, vit_tokens(config) - 1,
          Conv2d::Options{
              .kernel = config.patch, .stride = config.patch, .padding = 0, .bias = true, .role = Role::kEmbedding, .init = normal(config.init)})};

  Tensor forward(Forward& f, const Tensor& x_BCHW) const override {
    const Tensor patches = projection(f, x_BCHW).flatten(2).transpose(1, 2);  // [B, patches, D]
    const Tensor first = f[cls_token].expand({patches.size(0), 1, config.width});
    return f.dropout(at::cat({first, patches}, 1) + f[positions], config.dropout, *this, 0, false);
  }
};

struct VitAttention : Layer {
  explicit VitAttention(const VitConfig& c) : config(c) {}
  const VitConfig config;
  Linear::Options options{.bias = true, .init = normal(config.init)};
  Part<> query{this, "attention.query", Linear::columns(config.width, config.width, options)};
  Part<> key{this, "attention.key", Linear::columns(config.width, config.width, options)};
  Part<> value{this, "attention.value", Linear::columns(config.width, config.width, options)};
  Part<> output{this, "output.dense", Linear::rows(config.width, config.width, options)};

  Tensor forward(Forward& f, const Tensor& x) const override {
    const int64_t size = config.width / config.heads;
    const Tensor q = split_heads(query(f, x), size), k = split_heads(key(f, x), size), v = split_heads(value(f, x), size);
    return output(f, merge_heads(at::scaled_dot_product_attention(q, k, v)));
  }
  double extra_flops(int64_t) const override {
    const double width = static_cast<double>(config.width);
    return attention_flops(vit_tokens(config), config.width) + more_tokens(config, 4 * width * width);
  }
};

struct VitBlock : Layer {
  explicit VitBlock(const VitConfig& c) : config(c) {}
  const VitConfig config;
  Linear::Options options{.bias = true, .init = normal(config.init)};
  Part<> layernorm_before{this, "layernorm_before", make<LayerNorm>(config.width, config.epsilon)};
  Part<> attention{this, "attention", make<VitAttention>(config)};
  Part<> layernorm_after{this, "layernorm_after", make<LayerNorm>(config.width, config.epsilon)};
  Part<> intermediate{this, "intermediate.dense", Linear::columns(config.width, config.hidden, options)};
  Part<> output{this, "output.dense", Linear::rows(config.hidden, config.width, options)};

  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor h = x + f.dropout(attention(f, layernorm_before(f, x)), config.dropout, *this, 0, false);
    return h + f.dropout(output(f, at::gelu(intermediate(f, layernorm_after(f, h)))), config.dropout, *this, 1, false);
  }
  double extra_flops(int64_t) const override {
    return more_tokens(config, 2 * static_cast<double>(config.width) * static_cast<double>(config.hidden));
  }
};

struct VitLast : Layer {  // [B, T, D] -> [B, D]: the class token is what the head reads
  explicit VitLast(const VitConfig& c) : norm(this, "layernorm", make<LayerNorm>(c.width, c.epsilon)) {}
  Part<> norm;
  Tensor forward(Forward& f, const Tensor& x) const override { return norm(f, x.select(1, 0)); }
};

std::string vit_json(const VitConfig& c) {
  Json labels = Json::object(), ids = Json::object();
  for (int64_t i = 0; i < c.classes; ++i) {
    labels[std::to_string(i)] = "LABEL_" + std::to_string(i);
    ids["LABEL_" + std::to_string(i)] = i;
  }
  return json_text(Json{{"model_type", "vit"},
                        {"architectures", {"ViTForImageClassification"}},
                        {"hidden_size", c.width},
                        {"num_hidden_layers", c.layers},
                        {"num_attention_heads", c.heads},
                        {"intermediate_size", c.hidden},
                        {"hidden_act", "gelu"},
                        {"hidden_dropout_prob", c.dropout},
                        {"attention_probs_dropout_prob", 0.0},
                        {"initializer_range", c.init},
                        {"layer_norm_eps", c.epsilon},
                        {"image_size", c.size},
                        {"patch_size", c.patch},
                        {"num_channels", c.channels},
                        {"qkv_bias", true},
                        {"id2label", labels},
                        {"label2id", ids}},
                   2);
}

}  // namespace

void VitConfig::fields(Fields& f) {
  f.integer("patch", patch, {.least = 1, .most = 4096}, "side of a patch in pixels; divides the image's side");
  f.integer("layers", layers, {.least = 1, .most = 1024}, "number of blocks");
  f.integer("heads", heads, {.least = 1, .most = 1 << 20}, "attention heads; divides width");
  f.integer("width", width, {.least = 2, .most = 1 << 20}, "size of the residual stream");
  f.integer("hidden", hidden, {.least = 0, .most = 1 << 20}, "width of the MLP; 0: four times the model's");
  f.number("dropout", dropout, {.least = 0, .most = 1, .open_most = true},
           "share of the activations set to zero, after embedding, attention and MLP");
  f.number("init", init, {.least = 0, .open = true}, "standard deviation of initial weights");
}

Model vit(const VitConfig& given) {
  VitConfig c = given;
  if (c.hidden == 0) c.hidden = 4 * c.width;
  check_heads("model vit", c.width, c.heads, c.heads);
  if (c.size < c.patch || c.size % c.patch != 0)
    throw UserError("model vit: images of " + std::to_string(c.size) + " pixels don't split into patches of " + std::to_string(c.patch) +
                    "; set model.patch to a divisor");
  Model m;
  m.add("vit.embeddings", make<VitEmbeddings>(c));
  for (int64_t l = 0; l < c.layers; ++l) m.add("vit.encoder.layer." + std::to_string(l), make<VitBlock>(c));
  m.add("vit", make<VitLast>(c));
  m.add("classifier", make<Linear>(c.width, c.classes, Linear::Options{.bias = true, .init = normal(c.init), .role = Role::kHead}));
  m.config_json = vit_json(c);
  return m;
}

}  // namespace huajin
