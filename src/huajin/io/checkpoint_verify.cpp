#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"

namespace huajin {
namespace fs = std::filesystem;
namespace {

constexpr size_t kPieceToHash = size_t{1} << 20;

// Hashes file and tensors in one reading. The manifest's tensors are in order of offset here.
void verify_file(const std::string& path, const Manifest::File& expected, CheckpointCheck& check) {
  const FileView view(path);
  const Bytes bytes = view.bytes();
  if (bytes.size() != expected.bytes) {
    check.wrong.push_back(fmt::format("{}: has {} bytes, {} were written; use another checkpoint", path, bytes.size(), expected.bytes));
    return;
  }
  view.will_read_all();
  Hasher whole;
  for (size_t at = 0; at < bytes.size(); at += kPieceToHash) whole.update(bytes.subspan(at, std::min(kPieceToHash, bytes.size() - at)));
  check.bytes += bytes.size();
  check.files++;
  check.tensors += static_cast<int64_t>(expected.tensors.size());
  if (whole.hex() == expected.hash) return;  // every tensor is a part of the file and was hashed as it was written
  bool found = false;
  for (const Manifest::Part& part : expected.tensors) {
    const bool inside = part.offset <= bytes.size() && part.bytes <= bytes.size() - part.offset;
    if (inside && xxh3_hex(bytes.subspan(part.offset, part.bytes)) == part.hash) continue;
    found = true;
    check.wrong.push_back(fmt::format("{}: tensor '{}' (bytes {} to {}) is not what was written; use another checkpoint", path, part.name,
                                      part.offset, part.offset + part.bytes));
  }
  if (!found)
    check.wrong.push_back(
        fmt::format("{}: {} is not what was written; use another checkpoint", path, expected.tensors.empty() ? "its content" : "its header"));
}

// After the bytes are proven: what the reader sees is what the manifest lists.
void verify_tensors(const std::string& path, const Manifest::File& expected, CheckpointCheck& check) {
  const Safetensors file(path);
  bool same = file.tensors().size() == expected.tensors.size();
  for (const Manifest::Part& part : expected.tensors) {
    const StoredTensor* tensor = file.find(part.name);
    same = same && tensor && tensor->offset == part.offset && tensor->data.size() == part.bytes && xxh3_hex(tensor->data) == part.hash;
  }
  if (!same) check.wrong.push_back(fmt::format("{}: its tensors are not those of the manifest; use another checkpoint", path));
}

void find_strangers(const std::string& folder, const Manifest& manifest, CheckpointCheck& check) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    const std::string name = fs::path(entry.path()).lexically_relative(folder).string();
    if (!entry.is_directory() && name != "manifest.json" && !manifest.files.count(name)) check.strangers.push_back(entry.path().string());
  }
}

void verify_all(const std::string& folder, CheckpointCheck& check) {
  const std::string path = folder + "/manifest.json";
  const Manifest manifest = parse_manifest(read_file(path, uint64_t{64} << 20), path);
  check.step = manifest.step;
  check.score = manifest.score;
  check.bytes += file_size(path);
  check.files++;
  for (const char* needed : {"model/model.safetensors", "state.safetensors", "state.json"})
    if (!manifest.files.count(needed)) check.wrong.push_back(fmt::format("{}: does not list {}; use another checkpoint", path, needed));
  for (const auto& [name, expected] : manifest.files) try {
      const size_t before = check.wrong.size();
      const std::string file = confined(folder, name, path);
      verify_file(file, expected, check);
      if (check.wrong.size() == before && name.ends_with(".safetensors")) verify_tensors(file, expected, check);
    } catch (const Error& e) {
      check.wrong.emplace_back(e.what());
    }
  find_strangers(folder, manifest, check);
}

std::string proven(const std::string& folder) {
  const CheckpointCheck check = verify_checkpoint(folder);
  if (!check.good())
    throw DamagedError(check.wrong.size() == 1
                           ? check.wrong.front()
                           : fmt::format("{} (and {} more findings: huajin verify lists them)", check.wrong.front(), check.wrong.size() - 1));
  return folder;
}

}  // namespace

CheckpointCheck verify_checkpoint(const std::string& folder) {
  CheckpointCheck check;
  try {
    if (!is_folder(folder)) throw DamagedError(fmt::format("{}: is no checkpoint folder; name a folder step-N", folder));
    if (!exists(folder + "/manifest.json"))
      throw DamagedError(fmt::format("{}: has no manifest.json, so it was never finished; use another checkpoint", folder));
    verify_all(folder, check);
  } catch (const Error& e) {
    check.wrong.emplace_back(e.what());
  }
  return check;
}

OpenCheckpoint::OpenCheckpoint(const std::string& folder)
    : path_(proven(folder)),
      step_(parse_manifest(read_file(folder + "/manifest.json"), folder).step),
      model_(folder + "/model/model.safetensors"),
      state_(folder + "/state.safetensors"),
      state_json_(read_file(folder + "/state.json")) {}

}  // namespace huajin
