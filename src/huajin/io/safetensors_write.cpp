#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/io/safetensors.h"

namespace huajin {
namespace {

// Small enough to stay in a core's cache between its two hashes and the copy into the page cache.
constexpr size_t kPiece = size_t{1} << 20;

void check_what_to_store(const std::string& path, const std::vector<TensorToStore>& tensors) {
  std::set<std::string_view> seen;
  for (const TensorToStore& tensor : tensors) {
    const std::string where = fmt::format("{}: tensor '{}'", path, tensor.name);
    if (tensor.name == "__metadata__" || !seen.insert(tensor.name).second)
      throw UserError(fmt::format("{}: this name can't be used (again); rename one of the two", where));
    if (const uint64_t bytes = tensor_bytes(tensor.dtype, tensor.shape, where); bytes != tensor.bytes)
      throw UserError(fmt::format("{}: {} bytes given, its shape needs {}; make it contiguous", where, tensor.bytes, bytes));
  }
}

}  // namespace

StoredFile write_safetensors(const std::string& path, const std::vector<TensorToStore>& tensors, const std::map<std::string, std::string>& metadata) {
  check_what_to_store(path, tensors);
  std::vector<const TensorToStore*> order;
  for (const TensorToStore& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return dtype_bits(a->dtype) > dtype_bits(b->dtype); });

  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const TensorToStore* tensor : order) {
    header[tensor->name] = {{"dtype", tensor->dtype}, {"shape", tensor->shape}, {"data_offsets", {at, at + tensor->bytes}}};
    at += tensor->bytes;
  }
  std::string head = json_text(header);
  head.append((8 - head.size() % 8) % 8, ' ');  // data start at a multiple of 8
  const uint64_t length = head.size(), data_start = 8 + length;

  StoredFile stored;
  Hasher whole;
  FileWriter file(path);
  std::string start(reinterpret_cast<const char*>(&length), 8);
  start += head;
  whole.update(start);
  file.write(as_bytes(start));
  at = data_start;
  for (const TensorToStore* tensor : order) {
    Hasher own;
    Bytes rest(static_cast<const std::byte*>(tensor->data), tensor->bytes);
    while (!rest.empty()) {
      const Bytes piece = rest.first(std::min(rest.size(), kPiece));
      own.update(piece);
      whole.update(piece);
      file.write(piece);
      rest = rest.subspan(piece.size());
    }
    stored.tensors.push_back({tensor->name, at, tensor->bytes, own.hex()});
    at += tensor->bytes;
  }
  file.finish();
  stored.bytes = file.written();
  stored.hash = whole.hex();
  return stored;
}

}  // namespace huajin
