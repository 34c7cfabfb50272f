// The model that a recipe, or a folder of weights, asks for.
#pragma once
#include <memory>
#include <string>

#include "huajin/run/run.h"

namespace huajin {

// [model] with the sizes that the data decides; with a folder to start from, its config.json decides instead. UserError where they contradict each other.
std::unique_ptr<Model> make_model(const Recipe& recipe, const RunInputs& inputs, const std::string& init_from);
// Changes [model] width, and heads (with kv_heads in proportion) unless 0. UserError for a model without such a size.
void set_model_width(Recipe& recipe, int64_t width, int64_t heads);
// Weights of a folder: one model.safetensors, or shards with an index. DamagedError, UserError.
void load_model_folder(RunSession& session, const std::string& folder);

}  // namespace huajin
