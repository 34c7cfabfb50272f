// huajin eval RUN: the newest checkpoint on its validation split, or on other data.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/restored.h"
#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/json.h"

namespace huajin {

int eval_command(const CommandLine& line) {
  const std::string checkpoint = checkpoint_of(line, line.subjects.front());
  const CheckpointFacts facts = checkpoint_facts(OpenCheckpoint(checkpoint));
  Recipe recipe = Recipe::read(facts.recipe, checkpoint + ": recipe");
  if (!line.data.empty()) recipe.data.validation = line.data;  // all of it: only what is named as validation is never split
  auto inputs = std::make_unique<RunInputs>(inputs_of(recipe, cache_folder(line)));
  if (!inputs->validation) throw UserError(line.subjects.front() + ": has no validation data; give --data FILE");
  auto run = restored_run(line, checkpoint, std::move(inputs));
  const Evaluation evaluation = run->trainer().evaluate();
  const bool images = run->inputs().images;
  if (line.json) {
    Json out{{"checkpoint", checkpoint},
             {"val_loss", evaluation.loss},
             {"seconds", evaluation.seconds},
             {"weights_hash", weights_hash(run->session().table())}};
    out[images ? "val_accuracy" : "val_bits_per_byte"] = images ? evaluation.accuracy : evaluation.bits_per_byte;
    fmt::print("{}\n", json_text(out));
    return kExitOk;
  }
  fmt::print("{}\nvalidation loss {:.4f}", checkpoint, evaluation.loss);
  if (images)
    fmt::print(", accuracy {:.2f} %", 100 * evaluation.accuracy);
  else if (std::isfinite(evaluation.bits_per_byte))
    fmt::print(", {:.4f} bits per byte", evaluation.bits_per_byte);
  fmt::print(" ({:.1f} s)\n", evaluation.seconds);
  return kExitOk;
}

}  // namespace huajin
