#include "huajin/run/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "huajin/core/checkpoint.h"
#include "huajin/core/errors.h"
#include "huajin/io/file.h"
#include "huajin/io/safetensors.h"
#include "huajin/zoo/hugging_face.h"
#include "huajin/zoo/zoo.h"

namespace huajin {

std::unique_ptr<Model> make_model(const Recipe& recipe, const RunInputs& inputs, const std::string& init_from) {
  const ModelInput input{inputs.classes, inputs.images ? 0 : recipe.batch.length, inputs.channels, inputs.height, inputs.width};
  if (!init_from.empty() && exists(init_from + "/config.json") && !inputs.images) {
    auto model = std::make_unique<Model>(model_of_folder(init_from));
    if (recipe.batch.length > model->context)
      throw UserError(fmt::format("batch.length={}: the model in {} reads at most {} tokens; give a smaller batch.length", recipe.batch.length, init_from, model->context));
    const int64_t vocabulary = model->blocks.front().layer->weights.empty() ? 0 : model->blocks.front().layer->weights.front()->shape[0];
    if (vocabulary < inputs.classes)
      throw UserError(fmt::format("data.tokenizer: {} tokens, but the model in {} knows {}; use its own tokenizer with data.tokenizer_folder=\"{}\"", inputs.classes, init_from,
                                  vocabulary, init_from));
    return model;
  }
  const ZooEntry& entry = find_model(recipe.model.name);
  if (entry.images != inputs.images)
    throw UserError(fmt::format("model.name=\"{}\": a model of {}, but {} holds {}; choose one of the other kind (`huajin list models`)", entry.name, entry.images ? "images" : "text",
                                recipe.data.path, inputs.images ? "images" : "text"));
  ChoiceReader reader(recipe.model, "model");
  auto model = std::make_unique<Model>(entry.build(reader, input));
  reader.finish();
  return model;
}

void set_model_width(Recipe& recipe, int64_t width, int64_t heads) {
  Choice& model = recipe.model;
  complete(model, find_model(model.name).describe);
  const auto set = [&](const char* key, int64_t value) {
    if (!model.given.count(key)) throw UserError(fmt::format("model.name=\"{}\": has no size named {}, so that it cannot be built at another width", model.name, key));
    model.given[key] = std::to_string(value);
  };
  set("width", width);
  if (heads == 0) return;
  const int64_t old_heads = model.given.count("heads") ? std::stoll(model.given.at("heads")) : 0;
  set("heads", heads);
  const int64_t kv_heads = model.given.count("kv_heads") ? std::stoll(model.given.at("kv_heads")) : 0;
  if (kv_heads > 0 && old_heads > 0) set("kv_heads", std::max<int64_t>(1, kv_heads * heads / old_heads));
}

void load_model_folder(RunSession& session, const std::string& folder) { load_weights(session, Safetensors(folder)); }

}  // namespace huajin
