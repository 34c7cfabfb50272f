#include "huajin/zoo/zoo.h"

#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/zoo/gpt2.h"
#include "huajin/zoo/llama.h"
#include "huajin/zoo/mlp.h"
#include "huajin/zoo/resnet.h"
#include "huajin/zoo/small_cnn.h"
#include "huajin/zoo/vit.h"

namespace huajin {
namespace {

// `fit` puts the data's sizes into the config, `make_model` builds.
template <class Config>
ZooEntry entry(std::string name, std::string what, bool images, Config defaults, void (*fit)(Config&, const ModelInput&),
               Model (*make_model)(const Config&)) {
  return {std::move(name), std::move(what), images,
          [defaults](Fields& f) {
            Config config = defaults;
            config.fields(f);
          },
          [defaults, fit, make_model](Fields& reader, const ModelInput& input) {
            Config config = defaults;
            config.fields(reader);
            fit(config, input);
            return make_model(config);
          }};
}

void fit_gpt2(Gpt2Config& c, const ModelInput& input) {
  c.vocabulary = input.classes;
  c.context = input.context;
}
// The published sizes: a table of a round number of rows is multiplied faster, and 1024 positions.
void fit_published_gpt2(Gpt2Config& c, const ModelInput& input) {
  c.vocabulary = (input.classes + 127) / 128 * 128;
  c.context = std::max<int64_t>(1024, input.context);
}
void fit_llama(LlamaConfig& c, const ModelInput& input) {
  c.vocabulary = input.classes;
  c.context = input.context;
}
void fit_published_llama(LlamaConfig& c, const ModelInput& input) {
  c.vocabulary = (input.classes + 127) / 128 * 128;
  c.context = std::max<int64_t>(2048, input.context);
}
void fit_vit(VitConfig& c, const ModelInput& input) {
  if (input.height != input.width)
    throw UserError("model vit: images of " + std::to_string(input.height) + " x " + std::to_string(input.width) +
                    " pixels; it takes square ones. Use model.name = resnet");
  c.classes = input.classes;
  c.channels = input.channels;
  c.size = input.height;
}
template <class Config>
void fit_images(Config& c, const ModelInput& input) {
  c.classes = input.classes;
  c.channels = input.channels;
  c.height = input.height;
  c.width = input.width;
}
void fit_mlp(MlpConfig& c, const ModelInput& input) {
  c.classes = input.classes;
  c.inputs = input.channels * input.height * input.width;
}

std::vector<ZooEntry> entries() {
  const auto gpt2_size = [](const char* name, const char* what, int64_t layers, int64_t heads, int64_t width) {
    return entry<Gpt2Config>(name, what, false, Gpt2Config{.layers = layers, .heads = heads, .width = width}, fit_published_gpt2, gpt2);
  };
  const auto llama_size = [](const char* name, const char* what, int64_t layers, int64_t heads, int64_t kv_heads, int64_t width) {
    return entry<LlamaConfig>(name, what, false, LlamaConfig{.layers = layers, .heads = heads, .width = width, .kv_heads = kv_heads},
                              fit_published_llama, llama);
  };
  return {
      entry<LlamaConfig>("llama", "decoder with RMSNorm, rotary positions, gated or squared-ReLU MLP, grouped-query heads, optional QK-norm", false,
                         {}, fit_llama, llama),
      entry<Gpt2Config>("gpt2", "decoder with LayerNorm, learned positions, GELU, tied head", false, {}, fit_gpt2, gpt2),
      gpt2_size("gpt2-124m", "GPT-2 small: 12 layers of width 768, context 1024", 12, 12, 768),
      gpt2_size("gpt2-350m", "GPT-2 medium: 24 layers of width 1024, context 1024", 24, 16, 1024),
      gpt2_size("gpt2-774m", "GPT-2 large: 36 layers of width 1280, context 1024", 36, 20, 1280),
      llama_size("llama-124m", "Llama of GPT-2 small's size: 12 layers of width 768, 4 key/value heads, context 2048", 12, 12, 4, 768),
      entry<SmallCnnConfig>("small_cnn", "convolutions with batch norm and GELU, for images of about 32 x 32 in minutes", true, {},
                            fit_images<SmallCnnConfig>, small_cnn),
      entry<ResNetConfig>("resnet", "ResNet-10, 18 or 34 with a small stem", true, {}, fit_images<ResNetConfig>, resnet),
      entry<VitConfig>("vit", "vision transformer", true, {}, fit_vit, vit),
      entry<MlpConfig>("mlp", "multilayer perceptron on flattened images", true, {}, fit_mlp, mlp),
  };
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> list = entries();
  return list;
}

const ZooEntry& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& e : zoo()) {
    if (e.name == name) return e;
    names.push_back(e.name);
  }
  throw UserError("model.name: no model \"" + std::string(name) + "\"" + suggestion(name, names));
}

}  // namespace huajin
