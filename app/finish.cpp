#include "app/finish.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/generation.h"
#include "app/progress.h"
#include "app/result.h"
#include "app/run_log.h"
#include "app/setup.h"
#include "huajin/core/budget.h"
#include "huajin/core/errors.h"
#include "huajin/io/file.h"
#include "huajin/io/tokenizer.h"

namespace huajin {
namespace {

// A sample, as long as the budget lasts: the deadline holds for what is printed too.
void print_sample(Run& run) {
  const double limit = run.trainer().budget().limits().seconds;
  const double left = limit < Limits::kNone ? limit - run.trainer().budget().elapsed() - 0.2 : 5;
  if (left < 0.2 || !run.inputs().tokenizer) return;
  GenerateOptions options;
  options.seconds = std::min(left, 3.0);
  options.tokens = 300;
  fmt::print("\nwhat it writes:\n");
  const auto write = [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); };
  run.trainer().with_evaluated_weights([&] { generate(run.session(), *run.inputs().tokenizer, "", options, write); });
  fmt::print("\n\n");
}

void print_next(const std::string& name) {
  fmt::print(
      "try next\n"
      "  ./huajin generate {0} --prompt \"class \"     more of it\n"
      "  ./huajin train --data my.txt --budget 10m     your own text, or a folder of images\n"
      "  ./huajin verify {0}                           every byte of the checkpoint proven\n"
      "  ./huajin list                                 the techniques that recipes can use\n",
      name);
}

}  // namespace

int fit_and_report(Run& run, const std::string& folder, const CommandLine& line, FitOptions options) {
  install_signal_handlers();
  const std::string name = std::filesystem::path(folder).filename().string();
  std::unique_ptr<ProgressView> view;
  std::unique_ptr<RunLog> log;
  if (options.rank == 0) {
    view = std::make_unique<ProgressView>(how_to_show(line.quiet), run.inputs().images ? "images" : "tokens");
    log = std::make_unique<RunLog>(folder + "/log.jsonl");
    run.trainer().observe(log.get());
    run.trainer().observe(view.get());
  }
  double before = 0;
  if (options.resumed) {
    if (!run.trainer().resume()) throw UserError(folder + ": has no checkpoint to resume from; start it again with huajin train");
    before = run.trainer().state().elapsed_seconds;
    if (log) log->forget_after(run.trainer().state().progress.step);
  }
  const Result result = run.trainer().fit();
  if (options.rank != 0) return result.end == End::kTerminated ? kExitTerminated : kExitOk;
  view->close();
  log->sync();
  const Json json = result_json(run, result, name, before);
  write_atomically(folder + "/result.json", json_text(json, 2) + "\n");
  if (line.json)
    fmt::print("{}\n", json_text(json));
  else
    fmt::print("{}", result_text(run, result, folder));
  if (!line.json && !line.quiet && result.end == End::kBudget) {
    print_sample(run);
    if (options.first_steps) print_next(name);
  }
  if (result.end == End::kTerminated)
    std::fprintf(stderr, "huajin: stopped by a signal; the state is saved: huajin resume %s goes on\n", name.c_str());
  return result.end == End::kTerminated ? kExitTerminated : result.end == End::kNotFinite ? kExitNotFinite : kExitOk;
}

}  // namespace huajin
