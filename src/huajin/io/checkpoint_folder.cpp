#include "huajin/io/checkpoint_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "huajin/core/errors.h"

namespace huajin {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSaving = ".saving-", kRemoving = ".removing-", kReplaced = ".replaced";

// N of "step-N" and "step-N.replaced", else -1.
int64_t step_of_name(std::string_view name) {
  if (name.ends_with(kReplaced)) name.remove_suffix(kReplaced.size());
  if (!name.starts_with("step-")) return -1;
  name.remove_prefix(5);
  int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() ? step : -1;
}

void remove_leftovers(const std::string& checkpoints) {
  std::vector<std::string> leftovers;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kSaving) || name.starts_with(kRemoving)) leftovers.push_back(entry.path().string());
  }
  for (const std::string& path : leftovers) remove_tree(path);
}

// First by a rename, so that no half removed checkpoint ever bears its name.
void remove_checkpoint(const std::string& path) {
  const fs::path at(path);
  const std::string aside = (at.parent_path() / (std::string(kRemoving) + at.filename().string())).string();
  remove_tree(aside);
  rename_path(path, aside);
  remove_tree(aside);
}

Manifest::File entry_of(const StoredFile& stored) {
  Manifest::File file{stored.bytes, stored.hash, {}};
  for (const StoredFile::Tensor& tensor : stored.tensors) file.tensors.push_back({tensor.name, tensor.offset, tensor.bytes, tensor.hash});
  return file;
}
Manifest::File write_text(const std::string& path, const std::string& content) {
  FileWriter file(path);
  file.write(as_bytes(content));
  file.finish();
  return {content.size(), xxh3_hex(content), {}};
}

// Everything but the final name. All files and folders are synced when it returns.
void write_into(const std::string& folder, const CheckpointContent& content) {
  Manifest manifest{content.step, content.score, {}};
  make_folder(folder + "/model");
  for (const auto& [name, text] : content.model_files) manifest.files["model/" + name] = write_text(folder + "/model/" + name, text);
  manifest.files["model/model.safetensors"] = entry_of(write_safetensors(folder + "/model/model.safetensors", content.model, content.model_metadata));
  manifest.files["state.safetensors"] = entry_of(write_safetensors(folder + "/state.safetensors", content.state));
  manifest.files["state.json"] = write_text(folder + "/state.json", content.state_json);
  write_text(folder + "/manifest.json", manifest_text(manifest));
  sync_folder(folder + "/model");
  sync_folder(folder);
}

// Puts a whole checkpoint in the place of an older one of the same step. There is a good one under a name that counts at every moment.
void replace_checkpoint(const std::string& fresh, const std::string& place) {
  if (!exists(place)) return rename_path(fresh, place);
  if (exchange_paths(fresh, place)) return;
  const std::string aside = place + std::string(kReplaced);
  remove_tree(aside);
  rename_path(place, aside);
  rename_path(fresh, place);
}

}  // namespace

uint64_t checkpoint_bytes(const CheckpointContent& content) {
  uint64_t bytes = content.state_json.size() + 65536;  // folders, rounding up to blocks
  for (const auto* tensors : {&content.model, &content.state})
    for (const TensorToStore& tensor : *tensors) bytes += tensor.bytes + 512 + 4 * tensor.name.size();  // its header and manifest entries
  for (const auto& [name, text] : content.model_files) bytes += text.size() + 4096;
  return bytes;
}

std::string save_checkpoint(const std::string& checkpoints, const CheckpointContent& content) {
  make_folder(checkpoints);
  remove_leftovers(checkpoints);
  require_free_disk(checkpoints, checkpoint_bytes(content), fmt::format("the checkpoint of step {}", content.step));
  const std::string name = fmt::format("step-{:08}", content.step), path = checkpoints + "/" + name;
  const std::string temporary = fmt::format("{}/{}{}", checkpoints, kSaving, name);
  try {
    write_into(temporary, content);
    replace_checkpoint(temporary, path);
  } catch (...) {
    try {
      remove_tree(temporary);
    } catch (const WriteError&) {  // the first failure is the one to report; the next save tries again
    }
    throw;
  }
  sync_folder(checkpoints);
  if (exists(temporary)) remove_tree(temporary);  // what was exchanged
  if (exists(path + std::string(kReplaced))) remove_checkpoint(path + std::string(kReplaced));
  return path;
}

std::vector<std::string> list_checkpoints(const std::string& checkpoints) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    const std::string name = entry.path().filename().string();
    if (const int64_t step = step_of_name(name); step >= 0 && entry.is_directory()) found.emplace_back(step, entry.path().string());
  }
  // Of one step the plain name is shorter and newer.
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return std::pair(b.first, a.second) < std::pair(a.first, b.second); });
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

FoundCheckpoint newest_good_checkpoint(const std::string& checkpoints) {
  FoundCheckpoint found;
  for (const std::string& path : list_checkpoints(checkpoints)) {
    const CheckpointCheck check = verify_checkpoint(path);
    if (check.good()) {
      found.path = path;
      break;
    }
    found.skipped.push_back(check.wrong.front());
  }
  return found;
}

std::vector<std::string> retire_checkpoints(const std::string& checkpoints, int64_t keep) {
  const std::vector<std::string> paths = list_checkpoints(checkpoints);
  const size_t newest = static_cast<size_t>(std::max<int64_t>(keep, 1));
  if (paths.size() <= newest || !verify_checkpoint(paths.front()).good()) return {};
  std::string best;
  double best_score = std::numeric_limits<double>::infinity();
  for (const std::string& path : paths) try {
      const Manifest manifest = parse_manifest(read_file(path + "/manifest.json"), path + "/manifest.json");
      if (manifest.score && *manifest.score < best_score) {
        best_score = *manifest.score;
        best = path;
      }
    } catch (const Error&) {  // damaged: it can't be the best
    }
  std::vector<std::string> removed;
  for (size_t i = newest; i < paths.size(); ++i) {
    if (paths[i] == best) continue;
    remove_checkpoint(paths[i]);
    removed.push_back(paths[i]);
  }
  if (!removed.empty()) sync_folder(checkpoints);
  return removed;
}

}  // namespace huajin
