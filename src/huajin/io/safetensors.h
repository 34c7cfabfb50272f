// The safetensors format (github.com/huggingface/safetensors): 8 bytes little-endian length n, n bytes JSON, then the data of all tensors without
// gaps. A file is data from anywhere: every field is checked before it is used, and the reader is as strict as the format's own (no overlap, no gap,
// no trailing bytes, n at most 100 MB).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/io/file.h"
#include "huajin/io/hash.h"

namespace huajin {

struct StoredTensor {
  std::string name;
  std::string dtype;           // as in the file: F32, BF16, I64, ...
  std::vector<int64_t> shape;  // [] is a scalar
  Bytes data;                  // row-major, little-endian. May be unaligned in foreign files: copy with memcpy
  uint64_t offset = 0;         // of data in its file
};

int dtype_bits(std::string_view dtype);  // of one element; 0: no such type
// Bytes of a tensor. DamagedError (naming `where`) for an unknown dtype, a negative size, overflow, or a size that ends inside a byte.
uint64_t tensor_bytes(std::string_view dtype, const std::vector<int64_t>& shape, const std::string& where);

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            // in order of offset; data points into the given bytes
  std::map<std::string, std::string> metadata;  // "__metadata__", may be absent
};
// Checks and splits a whole file. DamagedError names `where`, the tensor and the offset.
SafetensorsHeader parse_safetensors(Bytes file, const std::string& where);

// A file, or a folder with model.safetensors or model.safetensors.index.json and its shards: opened by mmap, no copy.
class Safetensors {
 public:
  explicit Safetensors(const std::string& file_or_folder);
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const StoredTensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // of the first file
  const std::vector<std::string>& files() const { return paths_; }

 private:
  void open(const std::string& path);
  void open_index(const std::string& path);

  std::vector<FileView> views_;
  std::vector<std::string> paths_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

// File of each tensor, by an index's text. DamagedError for what is no index, or a file name that leaves `folder`.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& folder, const std::string& where);

// ---- writing ---------------------------------------------------------------------------------------------------------------
struct TensorToStore {
  std::string name, dtype;
  std::vector<int64_t> shape;
  const void* data;  // contiguous; stays valid while it is written
  uint64_t bytes;
};
struct StoredFile {  // what was written, for a manifest
  struct Tensor {
    std::string name;
    uint64_t offset, bytes;
    std::string hash;
  };
  uint64_t bytes = 0;
  std::string hash;             // XXH3-128 of the whole file
  std::vector<Tensor> tensors;  // in order of offset
};
// A new file, synced. Wider types come first, so that every tensor is aligned; else the order given. UserError for a name twice or bytes that don't
// fit the shape (before anything is written); WriteError if the disk fails.
StoredFile write_safetensors(const std::string& path, const std::vector<TensorToStore>& tensors,
                             const std::map<std::string, std::string>& metadata = {});

}  // namespace huajin
