// huajin data inspect | tokenize | pack.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/progress.h"
#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/core/names.h"
#include "huajin/io/json.h"

namespace huajin {
namespace {

int inspect(const CommandLine& line, const std::string& path) {
  Recipe recipe;
  recipe.data.path = path;
  recipe.data.tokenizer = "bytes";
  const RunInputs inputs = open_inputs(recipe, cache_folder(line));
  if (line.json) {
    Json out{{"path", path},
             {"kind", inputs.images ? "images" : "text"},
             {"classes", inputs.classes},
             {"train_units", inputs.train_units},
             {"validation_units", inputs.validation_units},
             {"train_bytes", inputs.train_bytes},
             {"class_names", inputs.class_names}};
    if (inputs.images) out["channels"] = inputs.channels, out["height"] = inputs.height, out["width"] = inputs.width;
    fmt::print("{}\n", json_text(out));
    return kExitOk;
  }
  fmt::print("{}\n", inputs.summary);
  if (!inputs.images) return kExitOk;
  fmt::print("{} x {} pixels, {} channels, {} classes:", inputs.width, inputs.height, inputs.channels, inputs.classes);
  for (size_t i = 0; i < inputs.class_names.size() && i < 20; ++i) fmt::print(" {}", inputs.class_names[i]);
  fmt::print("{}\n", inputs.class_names.size() > 20 ? " ..." : "");
  return kExitOk;
}

// Text to llm.c's token file, with the tokenizer's files beside it.
int tokenize(const CommandLine& line, const std::string& path) { throw UserError("huajin data tokenize: not in this build"); }
int pack(const CommandLine& line, const std::string& path) { throw UserError("huajin data pack: not in this build"); }

}  // namespace

int data_command(const CommandLine& line) {
  const std::vector<std::string> verbs{"inspect", "tokenize", "pack"};
  const std::string verb = line.subjects.front();
  if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end())
    throw UserError("huajin data " + verb + ": no such command" + suggestion(verb, verbs));
  if (line.subjects.size() != 2) throw UserError("huajin data " + verb + ": needs a path; write huajin data " + verb + " PATH");
  const std::string path = line.subjects[1];
  if (verb == "inspect") return inspect(line, path);
  return verb == "tokenize" ? tokenize(line, path) : pack(line, path);
}

}  // namespace huajin
