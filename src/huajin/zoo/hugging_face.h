// Models from Hugging Face's config.json. Their weights are read by core/checkpoint.h (load_weights), which takes the same names.
#pragma once
#include <string>
#include <string_view>

#include "huajin/core/model.h"

namespace huajin {

// gpt2, llama, qwen3 and vit as written by transformers 4 and 5, and huajin's own kinds. `where` names the file in errors. DamagedError: not JSON, a
// key missing or of the wrong type, absurd sizes. UserError: another model, or a variant (other activation, biases, scaled rotary positions, sliding
// windows) that huajin does not compute.
Model model_of_config(std::string_view config_json, const std::string& where);

// Of FOLDER/config.json.
Model model_of_folder(const std::string& folder);

}  // namespace huajin
