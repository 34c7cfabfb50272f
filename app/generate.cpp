// huajin generate RUN: text from a trained model, as it comes.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/generation.h"
#include "app/restored.h"
#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/io/run_folder.h"

namespace huajin {

int generate_command(const CommandLine& line) {
  std::string subject = line.subjects.empty() ? "" : line.subjects.front();
  if (subject.empty()) {
    const auto runs = list_runs(line.runs_folder);
    if (runs.empty()) throw UserError(line.runs_folder + ": holds no run; train one first (huajin train --data FILE), or name one");
    subject = runs.front();
  }
  const std::string checkpoint = checkpoint_of(line, subject);
  auto run = restored_run(line, checkpoint, nullptr);
  GenerateOptions options;
  options.tokens = line.tokens, options.temperature = line.temperature, options.top_k = line.top_k, options.top_p = line.top_p;
  options.seed = line.seed < 0 ? 1 : static_cast<uint64_t>(line.seed);
  std::string text;
  const auto began = std::chrono::steady_clock::now();
  if (!line.json) std::fwrite(line.prompt.data(), 1, line.prompt.size(), stdout);
  const auto write = [&](std::string_view piece) {
    if (line.json) {
      text += piece;
    } else {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    }
  };
  int64_t made = 0;
  run->trainer().with_evaluated_weights([&] { made = generate(run->session(), *run->inputs().tokenizer, line.prompt, options, write); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (line.json)
    fmt::print("{}\n", json_text(Json{{"checkpoint", checkpoint},
                                      {"prompt", line.prompt},
                                      {"text", text},
                                      {"tokens", made},
                                      {"tokens_per_s", static_cast<double>(made) / seconds}}));
  else
    fmt::print("\n");
  return kExitOk;
}

}  // namespace huajin
