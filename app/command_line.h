// What was typed. No torch here: the `huajin` program answers --help and mistakes by itself in a few milliseconds and starts `huajin-engine`,
// which takes a third of a second to load, only for what needs it. Both parse with the same code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace huajin {

struct CommandLine {
  std::string command;  // "train", "data inspect", "bench step", ...
  // common
  std::string recipe, data, validation, budget, run, runs_folder = "runs", device = "auto", init_from, cache;
  std::vector<std::string> sets;  // --set key=value, in order
  int64_t seed = -1;              // -1: the recipe's
  int threads = 0;                // 0: usable cores
  bool quiet = false, json = false, debug = false;
  // what a command works on: run, checkpoint, model, file, name
  std::vector<std::string> subjects;
  // generate
  std::string prompt;
  bool prompt_given = false;
  int64_t tokens = 256, top_k = 0;
  double temperature = 0.8, top_p = 1;
  // bench
  int64_t batch = 4, length = 64, steps = 5;
  std::string precision = "fp32";
  // data
  std::string tokenizer = "bpe", output;
  int64_t vocabulary = 4096;
  // average
  bool greedy = false;
  // transfer
  int64_t base_width = 0, rates = 7;  // base_width 0: the recipe's mup.base_width, or 64
  double share = 0.2;
  bool tune_only = false, coordinates = false;
  // doctor
  bool fast = false;
};

struct Parsed {
  CommandLine line;
  bool finished = false;  // help or version was asked for: print `text` and leave with 0
  std::string text;
};
// UserError (one line, with the nearest option or command) for what it does not know.
Parsed parse_command_line(int count, const char* const* arguments);

}  // namespace huajin
