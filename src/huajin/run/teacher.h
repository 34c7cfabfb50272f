// Models that another run, or somebody else, has trained, for a run to learn from.
#pragma once
#include <string>

#include "huajin/core/session.h"
#include "huajin/run/run.h"

namespace huajin {

// `given`: the folder of a run (its newest good checkpoint), a checkpoint, or a model's folder (config.json and safetensors); a run also by its name beside
// the run that saves into `place.checkpoints`. The model computes in the session's precision on its device, never learns and is saved nowhere. Errors begin
// with `key`. UserError: nothing there, another vocabulary or tokenizer, another size of images. DamagedError: a file is not as it was written.
Teacher open_teacher(const std::string& given, const std::string& key, const Recipe& recipe, const RunInputs& inputs, const RunPlace& place);

}  // namespace huajin
