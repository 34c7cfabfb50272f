#include "huajin/run/model.h"

#include <fmt/format.h>

#include "huajin/core/checkpoint.h"
#include "huajin/core/errors.h"
#include "huajin/io/safetensors.h"
#include "huajin/zoo/gpt2.h"
#include "huajin/zoo/llama.h"

namespace huajin {

std::unique_ptr<Model> make_model(const Recipe& recipe, const RunInputs& inputs, const std::string& init_from) {
  ChoiceReader reader(recipe.model, "model");
  if (recipe.model.name == "llama") {
    LlamaConfig config;
    config.fields(reader);
    reader.finish();
    config.vocabulary = inputs.classes;
    config.context = recipe.batch.length;
    return std::make_unique<Model>(llama(config));
  }
  if (recipe.model.name == "gpt2") {
    Gpt2Config config;
    config.fields(reader);
    reader.finish();
    config.vocabulary = inputs.classes;
    config.context = recipe.batch.length;
    return std::make_unique<Model>(gpt2(config));
  }
  throw UserError(fmt::format("model.name: no such model \"{}\"", recipe.model.name));
}

void load_model_folder(RunSession& session, const std::string& folder) { load_weights(session, Safetensors(folder)); }

}  // namespace huajin
