#include "huajin/budget/chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "huajin/core/errors.h"
#include "huajin/core/toml_text.h"
#include "huajin/io/image_decode.h"
#include "huajin/io/image_set.h"

namespace huajin {
namespace {

// The table of sizes was tuned on a machine with this speed; another one gets more or less done in a second.
constexpr double kReferenceFlops = 150e9;

void look_at_text(const std::string& path, DataFacts& facts) {
  std::ifstream file(path, std::ios::binary);
  std::string head(1 << 20, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  std::set<std::string> characters;
  for (size_t i = 0; i < head.size();) {
    const auto byte = static_cast<unsigned char>(head[i]);
    const size_t length = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 0;
    if (length == 0 || byte == 0) facts.utf8 = false;
    if (length == 0) break;
    if (i + length > head.size()) {  // cut by the megabyte, or by the file's end
      facts.utf8 = facts.utf8 && head.size() == size_t{1} << 20;
      break;
    }
    for (size_t k = 1; k < length; ++k) facts.utf8 = facts.utf8 && (static_cast<unsigned char>(head[i + k]) & 0xc0) == 0x80;
    if (characters.size() < 100000) characters.insert(head.substr(i, length));
    i += length;
  }
  facts.distinct = static_cast<double>(characters.size());
}

}  // namespace

DataFacts inspect_data(const DataSettings& data) {
  namespace fs = std::filesystem;
  DataFacts facts;
  std::error_code failed;
  std::string first;
  const auto count = [&](const fs::path& path) {
    const auto size = static_cast<double>(fs::file_size(path, failed));
    if (failed) return;
    facts.bytes += size;
    if (first.empty()) first = path.string();
  };
  if (fs::is_directory(data.path, failed)) {
    for (fs::recursive_directory_iterator at(data.path, fs::directory_options::skip_permission_denied, failed), end; !failed && at != end;
         at.increment(failed))
      if (at->is_regular_file(failed)) count(at->path());
  } else if (fs::is_regular_file(data.path, failed)) {
    count(data.path);
  }
  if (first.empty()) return facts;  // opening it says what is wrong
  try {
    const ImageLayout layout = data.kind == "text" ? ImageLayout::kNone : find_image_layout(data.path);
    facts.images = data.kind == "images" || layout != ImageLayout::kNone;
    facts.digits = layout == ImageLayout::kIdx;
    if (layout == ImageLayout::kFolders) {
      const ImageSize size = image_size(FileView(first).bytes(), first);
      facts.side = std::min(size.height, size.width);
    }
  } catch (const Error&) {
    facts.images = true;  // images that are damaged
  }
  if (!facts.images) look_at_text(first, facts);
  return facts;
}

double budget_in_seconds(const Limits& limits, const DataFacts& facts, const Machine& machine) {
  const double speed = machine.fp32_flops / kReferenceFlops, tokens_a_second = 40000 * speed;
  double seconds = limits.seconds;
  if (limits.tokens < Limits::kNone) seconds = std::min(seconds, limits.tokens / tokens_a_second);
  if (limits.examples < Limits::kNone) seconds = std::min(seconds, limits.examples * 128 / tokens_a_second);
  if (limits.steps < Limits::kNone) seconds = std::min(seconds, limits.steps * 1024 / tokens_a_second);
  if (limits.epochs < Limits::kNone) seconds = std::min(seconds, limits.epochs * facts.bytes / tokens_a_second);
  if (limits.flops < Limits::kNone) seconds = std::min(seconds, limits.flops / (0.3 * machine.fp32_flops));
  return seconds;
}

namespace {

struct TextSize {
  double most_seconds;                                     // of the reference machine
  int64_t layers, width, heads, length, rows, vocabulary;  // vocabulary 0: characters or bytes
  double rate;
};
// Tuned with the 1.1 MB of tinyshakespeare on two cores (docs/design/chooser.md has the figures); the last lines follow the same growth.
constexpr TextSize kTextSizes[] = {
    {20, 2, 128, 4, 128, 8, 1024, 0.02},      {60, 2, 160, 4, 128, 8, 1024, 0.02},        {150, 3, 160, 4, 128, 8, 1024, 0.02},
    {400, 4, 192, 6, 128, 8, 2048, 0.02},     {900, 5, 256, 8, 256, 8, 2048, 0.02},       {3600, 6, 320, 10, 256, 16, 4096, 0.02},
    {14400, 8, 384, 6, 512, 16, 8192, 0.015}, {86400, 10, 512, 8, 512, 32, 16384, 0.015}, {1e300, 12, 768, 12, 1024, 32, 32768, 0.01},
};

void set(Choice& choice, const char* key, const std::string& value) { choice.given[key] = value; }

void choose_text(Choosing& out, const DataFacts& facts, double seconds, double speed) {
  Recipe& r = out.recipe;
  const TextSize* size = std::begin(kTextSizes);
  while (size->most_seconds < seconds * speed) ++size;
  if (r.data.tokenizer == "auto") {
    r.data.tokenizer = size->vocabulary > 0 && facts.bytes > 300e3 ? "bpe" : facts.utf8 && facts.distinct <= 256 ? "characters" : "bytes";
    if (r.data.tokenizer == "bpe") r.data.vocabulary = size->vocabulary;
  }
  r.batch.rows = size->rows, r.batch.length = size->length;
  // Windows that overlap see more of what comes before each byte, at twice the cost: only where that is a small part of the budget.
  const double validation_tokens = 0.1 * facts.bytes / (r.data.tokenizer == "bpe" ? 2.3 : 1);
  r.evaluation.overlap = 2 * validation_tokens / (100e3 * speed) < 0.04 * seconds ? 2 : 1;
  // A row must fit several times into the training part.
  while (r.batch.length > 16 && facts.bytes > 0 && static_cast<double>(r.batch.length) * 20 > facts.bytes) r.batch.length /= 2;
  r.model = {"llama", {}, {}};
  set(r.model, "layers", std::to_string(size->layers));
  set(r.model, "width", std::to_string(size->width));
  set(r.model, "heads", std::to_string(size->heads));
  set(r.model, "qk_norm", "true");
  set(r.model, "activation", toml_quoted("relu2"));
  set(r.model, "zero_output", "true");
  set(r.model, "tied", "false");
  r.optimizer = {"muon", {}, {}};
  set(r.optimizer, "learning_rate", number_text(size->rate));
  r.schedule = {"linear", {}, {}};
  set(r.schedule, "warmup", "0.02");
  const double weights = 12.0 * static_cast<double>(size->layers) * static_cast<double>(size->width * size->width);
  out.reasons.push_back(
      fmt::format("tokenizer: {}: {}", r.data.tokenizer,
                  r.data.tokenizer == "bpe" ? fmt::format("{} pieces of about two to four bytes let each step see more text", r.data.vocabulary)
                  : r.data.tokenizer == "characters" ? fmt::format("{:.0f} different characters make the smallest table", facts.distinct)
                                                     : "reads any bytes"));
  out.reasons.push_back(fmt::format(
      "model: llama with {} layers of width {} ({:.1f} M weights in them), QK-norm and ReLU²: what {:.0f} s of this machine can train best",
      size->layers, size->width, weights / 1e6, seconds));
  out.reasons.push_back(
      fmt::format("batch: {} rows of {} tokens: small steps, because many of them fit into the budget", r.batch.rows, r.batch.length));
}

constexpr int64_t kLeastSide = 9;  // small_cnn's poolings leave one pixel of it

// recipes/mnist.toml and recipes/cifar10.toml.
void choose_images(Choosing& out, const DataFacts& facts) {
  Recipe& r = out.recipe;
  r.batch.rows = 128;
  r.data.translate = 2, r.data.flip = !facts.digits;
  const bool tiny = facts.side > 0 && facts.side < kLeastSide;
  r.model = {tiny ? "mlp" : "small_cnn", {}, {}};
  const int64_t narrow = facts.digits ? 8 : 16;
  for (auto& [key, times] : std::initializer_list<std::pair<const char*, int64_t>>{{"first", 1}, {"group1", 2}, {"group2", 4}, {"group3", 8}})
    if (!tiny) set(r.model, key, std::to_string(narrow * times));
  r.optimizer = {"muon", {}, {}};
  set(r.optimizer, "learning_rate", "0.05");
  set(r.optimizer, "momentum", "0.6");
  if (!facts.digits) {
    set(r.optimizer, "weight_decay", "0.005");
    r.techniques = {{"label_smoothing", {{"mass", "0.2"}}, {}}};
  }
  r.schedule = {"linear", {}, {}};
  out.reasons.push_back(
      fmt::format("data: images, decoded once into a packed file; shifted by up to 2 pixels{}", facts.digits ? "" : " and mirrored"));
  if (tiny) out.reasons.push_back(fmt::format("model: mlp: images of {} pixels are too small for convolutions with poolings", facts.side));
  else out.reasons.push_back(fmt::format("model: small_cnn with {} to {} filters, a good accuracy in minutes on small images", narrow, 8 * narrow));
  out.reasons.push_back("batch: 128 images");
}

}  // namespace

Choosing choose(Recipe start, const DataFacts& facts, const Limits& limits, const Machine& machine) {
  Choosing out{std::move(start), {}};
  const double seconds = budget_in_seconds(limits, facts, machine);
  const bool bf16 = machine.bf16_flops > 1.5 * machine.fp32_flops;
  const double speed = std::max(machine.fp32_flops, bf16 ? machine.bf16_flops : 0) / kReferenceFlops;
  if (facts.images)
    choose_images(out, facts);
  else
    choose_text(out, facts, seconds, speed);
  // Small models spend their time between the products, where a cast costs more than it saves.
  out.recipe.run.precision = "fp32";
  out.reasons.push_back(fmt::format("machine: {} threads, {:.0f} GFLOP/s in fp32, {:.0f} in bf16: precision {}", machine.threads,
                                    machine.fp32_flops / 1e9, machine.bf16_flops / 1e9, out.recipe.run.precision));
  out.reasons.push_back(fmt::format("optimizer: {} with a linear schedule to zero, which ends where the budget ({}) ends", out.recipe.optimizer.name,
                                    out.recipe.budget.limit));
  return out;
}

}  // namespace huajin
