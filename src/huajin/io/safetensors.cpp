#include "huajin/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "huajin/core/errors.h"
#include "huajin/io/json.h"

namespace huajin {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");
constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own bound
constexpr uint64_t kSizeField = 8;

constexpr std::pair<std::string_view, int> kDtypeBits[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
    {"U16", 16}, {"F16", 16}, {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},    {"F64", 64}, {"I64", 64},    {"U64", 64},    {"C64", 64}};

[[noreturn]] void refuse_safetensors(const std::string& where, const std::string& what) {
  throw DamagedError(fmt::format("{}: {}; get the file from its source again", where, what));
}

uint64_t header_length(Bytes file, const std::string& where) {
  if (file.size() < kSizeField)
    refuse_safetensors(where, fmt::format("has {} bytes, a safetensors file begins with 8 bytes of header length", file.size()));
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kSizeField);
  if (length > kLongestHeader) refuse_safetensors(where, fmt::format("header length is {}, at most {} is allowed", length, kLongestHeader));
  if (length > file.size() - kSizeField)
    refuse_safetensors(where, fmt::format("header length is {}, but only {} bytes follow (truncated?)", length, file.size() - kSizeField));
  if (length < 2 || as_text(file)[kSizeField] != '{') refuse_safetensors(where, fmt::format("header of {} bytes does not begin with '{{'", length));
  return length;
}

std::vector<int64_t> parse_shape(const Json& value, const std::string& where) {
  if (!value.is_array()) refuse_safetensors(where, fmt::format("shape is {}, a list is needed", value.type_name()));
  std::vector<int64_t> shape;
  for (const Json& size : value) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > uint64_t{INT64_MAX})
      refuse_safetensors(where, fmt::format("shape holds {}, sizes are integers from 0", json_text(size).substr(0, 50)));
    shape.push_back(size.get<int64_t>());
  }
  return shape;
}

StoredTensor parse_entry(const std::string& name, const Json& entry, Bytes data, uint64_t data_start, const std::string& file) {
  const std::string where = fmt::format("{}: tensor '{}'", file, name.substr(0, 200));
  StoredTensor tensor{name, string_member(entry, "dtype", where), parse_shape(member(entry, "shape", where), where), {}, 0};
  const Json& offsets = member(entry, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    refuse_safetensors(where, fmt::format("data_offsets is {}, two integers from 0 are needed", json_text(offsets).substr(0, 80)));
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size())
    refuse_safetensors(where, fmt::format("data_offsets [{}, {}] do not lie in the {} bytes of data (truncated?)", begin, end, data.size()));
  const uint64_t bytes = tensor_bytes(tensor.dtype, tensor.shape, where);
  if (bytes != end - begin) refuse_safetensors(where, fmt::format("{} bytes at offset {}, its shape needs {}", end - begin, begin, bytes));
  tensor.data = data.subspan(begin, bytes);
  tensor.offset = data_start + begin;
  return tensor;
}

}  // namespace

int dtype_bits(std::string_view dtype) {
  for (const auto& [name, bits] : kDtypeBits)
    if (name == dtype) return bits;
  return 0;
}

uint64_t tensor_bytes(std::string_view dtype, const std::vector<int64_t>& shape, const std::string& where) {
  const int bits = dtype_bits(dtype);
  if (bits == 0) refuse_safetensors(where, fmt::format("dtype '{}' is not one of the format's", dtype.substr(0, 50)));
  for (int64_t size : shape)
    if (size < 0) refuse_safetensors(where, fmt::format("shape holds {}, sizes are integers from 0", size));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t total = static_cast<uint64_t>(bits);
  for (int64_t size : shape)
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(size), &total))
      refuse_safetensors(where, "its shape has more elements than 64 bits can count");
  if (total % 8 != 0) refuse_safetensors(where, "its data end inside a byte");
  return total / 8;
}

SafetensorsHeader parse_safetensors(Bytes file, const std::string& where) {
  const uint64_t length = header_length(file, where), data_start = kSizeField + length;
  // Entry: 1 object, dtype, 2 lists, their numbers: about 9 values. 4 million bound it at 400,000 tensors.
  const Json header =
      parse_json(as_text(file.subspan(kSizeField, length)), where + ": header", {.bytes = kLongestHeader, .depth = 3, .values = 4'000'000});
  if (!header.is_object()) refuse_safetensors(where, "header is no JSON object");
  SafetensorsHeader result;
  const Bytes data = file.subspan(data_start);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) refuse_safetensors(where, "__metadata__ is no object of strings");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) refuse_safetensors(where, fmt::format("__metadata__ key '{}' is no string", key.substr(0, 100)));
        result.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    result.tensors.push_back(parse_entry(name, entry, data, data_start, where));
  }
  std::stable_sort(result.tensors.begin(), result.tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.offset, a.data.size()) < std::pair(b.offset, b.data.size());
  });
  uint64_t at = data_start;
  for (const StoredTensor& tensor : result.tensors) {
    if (tensor.offset < at)
      refuse_safetensors(where, fmt::format("tensor '{}' overlaps the one before it at byte {}", tensor.name.substr(0, 200), tensor.offset));
    if (tensor.offset > at)
      refuse_safetensors(where, fmt::format("bytes {} to {} before tensor '{}' belong to no tensor", at, tensor.offset, tensor.name.substr(0, 200)));
    at += tensor.data.size();
  }
  if (at != file.size()) refuse_safetensors(where, fmt::format("{} trailing bytes after the last tensor, from byte {}", file.size() - at, at));
  return result;
}

std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& folder, const std::string& where) {
  const Json index = parse_json(text, where, {.bytes = kLongestHeader, .depth = 4, .values = 4'000'000});
  const Json& map = member(index, "weight_map", where);
  if (!map.is_object()) refuse_safetensors(where, fmt::format("weight_map is {}, an object of tensor and file is needed", map.type_name()));
  std::map<std::string, std::string> files, resolved;
  for (const auto& [tensor, file] : map.items()) {
    if (!file.is_string()) refuse_safetensors(where, fmt::format("the file of tensor '{}' is no string", tensor.substr(0, 200)));
    std::string& path = resolved[file.get<std::string>()];
    if (path.empty()) path = confined(folder, file.get<std::string>(), where);
    files[tensor] = path;
  }
  return files;
}

Safetensors::Safetensors(const std::string& file_or_folder) {
  const std::string single = file_or_folder + "/model.safetensors", index = single + ".index.json";
  if (!is_folder(file_or_folder))
    open(file_or_folder);
  else if (exists(single))
    open(single);
  else if (exists(index))
    open_index(index);
  else
    throw UserError(fmt::format(
        "{}: has neither model.safetensors nor model.safetensors.index.json; name a folder that save_pretrained or huajin wrote", file_or_folder));
}

void Safetensors::open(const std::string& path) {
  FileView view(path);
  SafetensorsHeader header = parse_safetensors(view.bytes(), path);
  for (StoredTensor& tensor : header.tensors) {
    if (!by_name_.emplace(tensor.name, tensors_.size()).second)
      refuse_safetensors(path, fmt::format("tensor '{}' is in another shard too", tensor.name.substr(0, 200)));
    tensors_.push_back(std::move(tensor));
  }
  if (paths_.empty()) metadata_ = std::move(header.metadata);
  views_.push_back(std::move(view));  // moves the handle, the mapped bytes stay where they are
  paths_.push_back(path);
}

void Safetensors::open_index(const std::string& path) {
  const auto file_of = parse_safetensors_index(read_file(path, kLongestHeader), fs::path(path).parent_path().string(), path);
  std::set<std::string> files;
  for (const auto& [tensor, file] : file_of) files.insert(file);
  std::map<std::string, std::string> found;
  for (const std::string& file : files) {
    if (!exists(file)) throw DamagedError(fmt::format("{}: shard {} is missing; copy it beside the index", path, file));
    const size_t first = tensors_.size();
    open(file);
    for (size_t i = first; i < tensors_.size(); ++i) found[tensors_[i].name] = file;
  }
  for (const auto& [tensor, file] : file_of)
    if (auto it = found.find(tensor); it == found.end() || it->second != file)
      refuse_safetensors(path, fmt::format("tensor '{}' is not in {}", tensor.substr(0, 200), file));
  for (const auto& [tensor, file] : found)
    if (!file_of.count(tensor)) refuse_safetensors(file, fmt::format("tensor '{}' is not in the index {}", tensor.substr(0, 200), path));
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace huajin
