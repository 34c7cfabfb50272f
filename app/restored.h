// A trained model, opened without the data it was trained on.
#pragma once
#include <memory>
#include <string>

#include "app/command_line.h"
#include "huajin/core/checkpoint.h"
#include "huajin/io/tokenizer.h"
#include "huajin/run/run.h"

namespace huajin {

// The newest good checkpoint of a run, or the checkpoint itself. UserError if there is none; DamagedError if all are damaged.
std::string checkpoint_of(const CommandLine& line, const std::string& given);

// A run with these inputs and the checkpoint's weights. `inputs` null: stands in for the data (vocabulary from the checkpoint's tokenizer).
std::unique_ptr<Run> restored_run(const CommandLine& line, const std::string& checkpoint, std::unique_ptr<RunInputs> inputs);

}  // namespace huajin
