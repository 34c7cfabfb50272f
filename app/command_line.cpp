#include "app/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "huajin/core/errors.h"
#include "huajin/core/names.h"

namespace huajin {
namespace {

void common_options(CLI::App& app, CommandLine& line) {
  app.add_option("--threads", line.threads, "threads to compute with (default: the cores this process may use)");
  app.add_flag("--quiet", line.quiet, "no progress, only warnings and the result");
  app.add_flag("--json", line.json, "print the result as one JSON object");
  app.add_flag("--debug", line.debug, "after an error, print where in the program it happened");
  app.add_option("--runs-dir", line.runs_folder, "folder that holds run folders (default: runs)");
}

void recipe_options(CLI::App& app, CommandLine& line) {
  app.add_option("--data", line.data, "text file, folder of text, or images (default: the C++ headers of libtorch)");
  app.add_option("--val", line.validation, "data to validate on (default: the last tenth of --data)");
  app.add_option("--budget", line.budget, "how much to spend: 60s, 10m, 2h, 500step, 50Mtok, 3epoch, 1e15flop; several with commas (default: 2m)");
  app.add_option("--recipe", line.recipe, "TOML recipe (default: huajin chooses one)");
  app.add_option("--set", line.sets, "change one key of the recipe: --set optimizer.learning_rate=0.01")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--seed", line.seed, "the same seed gives the same run (default: 1)");
  app.add_option("--device", line.device, "auto, cpu or cuda");
  app.add_option("--init-from", line.init_from, "start from the weights in this folder (Hugging Face layout, or a checkpoint's model/)");
  app.add_option("--cache-dir", line.cache, "folder for what is made from the data and can be made again");
}

using Build = std::function<void(CLI::App&, CommandLine&)>;

void subject(CLI::App& app, CommandLine& line, const char* name, const char* what, int least, int most) {
  auto* option = app.add_option(name, line.subjects, what)->expected(least, most)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (least > 0) option->required();
}

struct CommandText {
  const char* name;
  const char* what;
  Build build;
};

void build_generate(CLI::App& app, CommandLine& line) {
  subject(app, line, "RUN", "run or checkpoint (default: the newest run)", 0, 1);
  app.add_option("--prompt", line.prompt, "text to go on from")->each([&](const std::string&) { line.prompt_given = true; });
  app.add_option("--tokens", line.tokens, "how many to write (default: 256)");
  app.add_option("--temperature", line.temperature, "0: always the likeliest; 1: as the model says (default: 0.8)");
  app.add_option("--top-k", line.top_k, "choose among the k likeliest only (default: all)");
  app.add_option("--top-p", line.top_p, "choose among the likeliest that together have this probability (default: 1)");
  app.add_option("--seed", line.seed, "the same seed writes the same text (default: 1)");
  app.add_option("--device", line.device, "auto, cpu or cuda");
}

void build_bench(CLI::App& app, CommandLine& line) {
  app.add_option("WHAT", line.subjects, "step MODEL: seconds of one training step of a model such as gpt2-124m | tokenizer PATH: learning a bpe from a text, and encoding it")
      ->expected(1, 2)
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--batch", line.batch, "rows (default: 4)");
  app.add_option("--length", line.length, "tokens a row (default: 64)");
  app.add_option("--steps", line.steps, "steps that are measured, after one that is not (default: 5)");
  app.add_option("--precision", line.precision, "fp32, bf16, fp16, fp64 or auto (default: fp32)");
  app.add_option("--device", line.device, "auto, cpu or cuda");
  app.add_option("--set", line.sets, "change one key of the recipe")->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--seed", line.seed, "");
  app.add_option("--vocabulary", line.vocabulary, "tokenizer: tokens that are learned (default: 4096)");
}

void build_data(CLI::App& app, CommandLine& line) {
  app.add_option("WHAT", line.subjects, "inspect PATH | tokenize PATH | pack FOLDER")
      ->expected(1, 2)
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--tokenizer", line.tokenizer, "tokenize: bytes, characters, bpe, or a folder of encoder.json and vocab.bpe (default: bpe)");
  app.add_option("--vocabulary", line.vocabulary, "tokenize: tokens of a bpe that is trained on the data (default: 4096)");
  app.add_option("--out", line.output, "file to write: tokenize: llm.c's .bin; pack: packed images");
}

void build_average(CLI::App& app, CommandLine& line) {
  subject(app, line, "RUN", "runs, checkpoints, or folders of weights of one model; of one: what its evaluations see, an average included", 1, 1000);
  app.add_option("--out", line.output, "folder to write: a Hugging Face layout, for --init-from")->required();
  app.add_flag("--greedy", line.greedy, "leave out runs that make the mean worse on the validation split of the first");
  app.add_option("--data", line.data, "other data to evaluate on, all of it (default: the validation split of the first run)");
  app.add_option("--device", line.device, "auto, cpu or cuda");
  app.add_option("--cache-dir", line.cache, "folder for what is made from the data and can be made again");
}

void build_transfer(CLI::App& app, CommandLine& line) {
  recipe_options(app, line);
  app.add_option("--run", line.run, "name of the run folder (default: date and time)");
  app.add_option("--base-width", line.base_width, "width of the model that is tuned (default: the recipe's mup.base_width, or 64)");
  app.add_option("--share", line.share, "of the budget, for all trials together (default: 0.2)");
  app.add_option("--rates", line.rates, "learning rates to try, a factor of 2 apart, around the recipe's (default: 7)");
  app.add_option("--out", line.output, "file for the recipe of the wide model (default: transfer.toml)");
  app.add_flag("--tune-only", line.tune_only, "write the recipe, train nothing");
  app.add_flag("--coordinates", line.coordinates, "no tuning: print the coordinate check, sizes of activations by width with and without mup");
}

std::vector<CommandText> commands() {
  const Build recipe = recipe_options;
  const auto with_name = [](const char* help) -> Build {
    return [help](CLI::App& app, CommandLine& line) {
      recipe_options(app, line);
      app.add_option("--run", line.run, help);
    };
  };
  const auto with = [](const char* name, const char* what, int least, int most) -> Build {
    return [=](CLI::App& app, CommandLine& line) { subject(app, line, name, what, least, most); };
  };
  return {
      {"train", "train the best model that a budget buys", with_name("name of the run folder (default: date and time)")},
      {"resume", "go on with a run that was interrupted, bit for bit",
       [](CLI::App& app, CommandLine& line) {
         subject(app, line, "RUN", "name or folder of a run", 1, 1);
         app.add_option("--budget", line.budget, "a new total budget (default: the run's)");
         app.add_option("--device", line.device, "auto, cpu or cuda");
         app.add_option("--cache-dir", line.cache, "folder for what is made from the data and can be made again");
       }},
      {"eval", "evaluate a run's newest checkpoint",
       [](CLI::App& app, CommandLine& line) {
         subject(app, line, "RUN", "run or checkpoint", 1, 1);
         app.add_option("--data", line.data, "other data to evaluate on, all of it (default: the run's validation split)");
         app.add_option("--device", line.device, "auto, cpu or cuda");
         app.add_option("--cache-dir", line.cache, "folder for what is made from the data and can be made again");
       }},
      {"generate", "write text with a trained model", build_generate},
      {"bench", "measure the speed of a training step", build_bench},
      {"plan", "predict parameters, memory, seconds per step and what the budget buys; of a finished run: predicted against measured",
       [](CLI::App& app, CommandLine& line) {
         recipe_options(app, line);
         subject(app, line, "RUN", "a finished run", 0, 1);
       }},
      {"check", "dry run: build and validate everything, 2 steps, 1 evaluation, 1 save, 1 load; leaves no files", recipe},
      {"verify", "prove every byte of a run's checkpoints", with("RUN", "run, checkpoint or folder of checkpoints", 1, 1)},
      {"compare", "two or more runs side by side", with("RUN", "names or folders of runs", 2, 8)},
      {"report", "curves, results and recipes of runs as one HTML file that needs no network",
       [](CLI::App& app, CommandLine& line) {
         subject(app, line, "RUN", "names or folders of runs, finished or not", 1, 1000);
         app.add_option("--out", line.output, "file to write (default: report.html in the folder of the first run)");
       }},
      {"average", "a model soup: the mean of the weights of finished runs, as a folder to start from", build_average},
      {"transfer", "tune the learning rate on a narrow model, train the wide one with it (muP)", build_transfer},
      {"list", "techniques, optimizers, schedules, models or runs",
       with("WHAT", "techniques | optimizers | schedules | models | runs (default: all but runs)", 0, 1)},
      {"explain", "what a technique, model or recipe table is, and its keys", with("NAME", "such as adamw, llama, sam, batch", 1, 1)},
      {"data", "inspect, tokenize or pack data", build_data},
      {"doctor", "what this machine is and what huajin chose",
       [](CLI::App& app, CommandLine& line) { app.add_flag("--fast", line.fast, "shorter measurements, none of the disk"); }},
  };
}

std::string command_list() {
  std::string text;
  for (auto& command : commands())
    text += "  " + std::string(command.name) + std::string(10 - std::string(command.name).size(), ' ') + command.what + "\n";
  return text;
}

const char* const kVersion = "huajin 0.1.0";

std::string main_help() {
  return std::string("huajin trains the best model that a stated budget can buy, on the machine at hand.\n\n") +
         "usage: huajin COMMAND [OPTIONS]\n\n" + command_list() +
         "\nhuajin COMMAND --help tells more. To begin:\n"
         "  huajin train                                    two minutes on the C++ headers of libtorch, then a sample\n"
         "  huajin train --data my.txt --budget 10m         your text, or a folder of images\n";
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// CLI11 says which argument it did not expect; the nearest option that there is helps more.
std::string unknown_argument(const CLI::App& app, const std::string& argument) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (auto& name : option->get_lnames()) names.push_back("--" + name);
  const std::string bare = argument.substr(0, argument.find('='));
  const std::string near = nearest_name(bare, names);
  return argument + ": " + (argument.rfind('-', 0) == 0 ? "no such option" : "one argument too many") +
         (near.empty() || argument.rfind('-', 0) != 0 ? "; " + app.get_name() + " --help lists what it takes" : "; did you mean " + near + "?");
}

void check_values(const CommandLine& line) {
  const auto refuse = [](const std::string& what) { throw UserError(what); };
  if (line.device != "auto" && line.device != "cpu" && line.device != "cuda") refuse("--device " + line.device + ": must be auto, cpu or cuda");
  if (line.threads < 0 || line.threads > 4096)
    refuse("--threads " + std::to_string(line.threads) + ": must be at least 1 and at most 4096, or 0 for all usable cores");
  if (line.temperature < 0 || !(line.temperature <= 100)) refuse("--temperature " + std::to_string(line.temperature) + ": must be at least 0 and at most 100");
  if (!(line.top_p > 0 && line.top_p <= 1)) refuse("--top-p " + std::to_string(line.top_p) + ": must be greater than 0 and at most 1");
  if (line.top_k < 0) refuse("--top-k " + std::to_string(line.top_k) + ": must be at least 1, or 0 for all");
  if (line.tokens < 1) refuse("--tokens " + std::to_string(line.tokens) + ": must be at least 1");
  if (line.batch < 1) refuse("--batch " + std::to_string(line.batch) + ": must be at least 1");
  if (line.length < 1) refuse("--length " + std::to_string(line.length) + ": must be at least 1");
  if (line.steps < 1) refuse("--steps " + std::to_string(line.steps) + ": must be at least 1");
  if (line.base_width < 0) refuse("--base-width " + std::to_string(line.base_width) + ": must be at least 1");
  if (!(line.share > 0 && line.share < 1)) refuse("--share " + std::to_string(line.share) + ": must be greater than 0 and less than 1");
  if (line.rates < 2 || line.rates > 32) refuse("--rates " + std::to_string(line.rates) + ": must be at least 2 and at most 32");
  if (line.seed < -1) refuse("--seed " + std::to_string(line.seed) + ": must be at least 0");
  if (line.command == "compare" && line.subjects.size() < 2) refuse("huajin compare " + line.subjects.front() + ": needs two or more RUNs");
  if (line.command == "average" && line.output.empty()) refuse("--out: must name a folder that is not there yet");
  if (line.runs_folder.empty()) refuse("--runs-dir: must name a folder");
}

}  // namespace

Parsed parse_command_line(int count, const char* const* arguments) {
  const std::string first = count > 1 ? arguments[1] : "--help";
  Parsed parsed;
  parsed.finished = true;
  if (first == "--help" || first == "-h" || first == "help") return parsed.text = main_help(), parsed;
  if (first == "--version" || first == "version") return parsed.text = std::string(kVersion) + "\n", parsed;
  std::vector<std::string> names;
  const auto all = commands();
  for (auto& command : all) names.emplace_back(command.name);
  const auto found = std::find_if(all.begin(), all.end(), [&](auto& command) { return command.name == first; });
  if (found == all.end()) throw UserError("huajin " + first + ": no such command" + suggestion(first, names));

  CLI::App app(found->what, "huajin " + first);
  parsed.line.command = first;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // of an option that is given twice the last one counts
  common_options(app, parsed.line);
  found->build(app, parsed.line);
  std::vector<std::string> rest(arguments + std::min(count, 2), arguments + count);
  std::reverse(rest.begin(), rest.end());
  app.allow_extras();
  try {
    app.parse(rest);
  } catch (const CLI::CallForHelp&) {
    parsed.text = app.help();
    return parsed;
  } catch (const CLI::ParseError& error) {
    std::string what = one_line(error.what());
    if (const std::string unreadable = "Could not convert: "; what.rfind(unreadable, 0) == 0) {
      what = what.substr(unreadable.size());
      const bool fraction = what.rfind("--temperature", 0) == 0 || what.rfind("--top-p", 0) == 0 || what.rfind("--share", 0) == 0;
      what += fraction ? ": must be a number, such as 0.8" : ": must be a whole number of at most 9223372036854775807, such as 4";
    }
    throw UserError("huajin " + first + ": " + what + "; huajin " + first + " --help lists what it takes");
  }
  for (const auto* option : app.get_options())
    for (auto& value : option->results())
      if (value.empty() && option->get_name() != "--prompt") throw UserError(option->get_name() + ": is empty; give a value, or leave the option out");
  if (!app.remaining().empty()) throw UserError(unknown_argument(app, app.remaining().front()));
  check_values(parsed.line);
  parsed.finished = false;
  return parsed;
}

}  // namespace huajin
