#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/io/checkpoint_folder.h"
#include "huajin/io/json.h"

namespace huajin {
namespace {

constexpr const char* kManifestFormat = "huajin checkpoint 1";

uint64_t natural_member(const Json& object, std::string_view key, const std::string& where) {
  const int64_t value = integer_member(object, key, where);
  if (value < 0) throw DamagedError(fmt::format("{}: key '{}' is {}, it can't be negative; use another checkpoint", where, key, value));
  return static_cast<uint64_t>(value);
}

}  // namespace

// The text is canonical (sorted keys, fixed indent), so the hash of the text without "self" covers every byte of the file.
std::string manifest_text(const Manifest& manifest) {
  Json text = {{"format", kManifestFormat}, {"step", manifest.step}, {"files", Json::object()}};
  text["score"] = manifest.score ? Json(*manifest.score) : Json();
  for (const auto& [path, file] : manifest.files) {
    Json& entry = text["files"][path] = {{"bytes", file.bytes}, {"xxh3_128", file.hash}};
    if (file.tensors.empty()) continue;
    for (const Manifest::Part& part : file.tensors)
      entry["tensors"][part.name] = {{"offset", part.offset}, {"bytes", part.bytes}, {"xxh3_128", part.hash}};
  }
  text["self"] = xxh3_hex(json_text(text, 1));
  return json_text(text, 1) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  Json json = parse_json(text, where, {.depth = 6, .values = 4'000'000});
  const std::string self = string_member(json, "self", where);
  json.erase("self");
  const bool same = xxh3_hex(json_text(json, 1)) == self;
  json["self"] = self;
  if (!same || json_text(json, 1) + "\n" != text)
    throw DamagedError(fmt::format("{}: does not have the hash that it states; use another checkpoint", where));
  if (string_member(json, "format", where) != kManifestFormat)
    throw DamagedError(fmt::format("{}: format is '{}', this huajin reads '{}'; use the version that wrote it", where,
                                   string_member(json, "format", where), kManifestFormat));
  Manifest manifest;
  manifest.step = integer_member(json, "step", where);
  if (const Json& score = member(json, "score", where); !score.is_null()) manifest.score = number_member(json, "score", where);
  const Json& files = member(json, "files", where);
  if (!files.is_object())
    throw DamagedError(fmt::format("{}: key 'files' is {}, an object is needed; use another checkpoint", where, files.type_name()));
  for (const auto& [path, entry] : files.items()) {
    Manifest::File file{natural_member(entry, "bytes", where), string_member(entry, "xxh3_128", where), {}};
    if (const auto tensors = entry.find("tensors"); tensors != entry.end())
      for (const auto& [name, part] : tensors->items())
        file.tensors.push_back(
            {name, natural_member(part, "offset", where), natural_member(part, "bytes", where), string_member(part, "xxh3_128", where)});
    manifest.files[path] = std::move(file);
  }
  return manifest;
}

}  // namespace huajin
