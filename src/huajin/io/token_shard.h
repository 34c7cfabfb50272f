// Token files: llm.c's `.bin`, read by mmap and written in shards with bounded memory.
//
// 256 little-endian int32, then the ids:
//   word 0 and 1   20240520 and 1: ids are uint16;  20240801 and 7: ids are uint32
//   word 2         number of ids
//   word 128...    huajin's extras, all zero in files of other programs: "HJTK", vocabulary, shard number, 1 in the last shard, and XXH3-128 (4 words, most
//                  significant first) of the ids followed by the header with these 4 words zero
// With the extras any altered or lost byte is found; without them size, magic and ids are checked.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/io/file.h"
#include "huajin/io/tokenizer.h"

namespace huajin {

struct TokenHeader {
  int width = 0;  // bytes an id: 2 or 4
  uint64_t count = 0;
  int64_t vocabulary = 0;  // 0: not said (written by another program)
  int64_t shard = -1;      // -1: not said
  bool last = false;
};
// What `file` says about itself. UserError if it is no token file, DamagedError if it is one but its size, its hash or an id contradicts the header.
TokenHeader parse_token_shard(Bytes file, const std::string& where);

class TokenShard {
 public:
  explicit TokenShard(const std::string& path);  // checks all of it: parse_token_shard
  const TokenHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return header_.count; }
  uint32_t operator[](uint64_t i) const {
    if (header_.width == 2) return id_of<uint16_t>(i);
    return id_of<uint32_t>(i);
  }
  void forget() const { file_.forget(); }
  // UserError with the id and where it stands if one is not below `vocabulary`, or if the file was made with another vocabulary.
  void require_vocabulary(int64_t vocabulary) const;

 private:
  template <class Id>
  uint32_t id_of(uint64_t i) const {
    Id id;
    std::memcpy(&id, ids_ + i * sizeof id, sizeof id);
    return id;
  }
  FileView file_;
  TokenHeader header_;
  const std::byte* ids_;
};

// A regular file that begins with one of the two magics, or a folder whose first `.bin` file does.
bool is_token_shard(const std::string& path);
// `path` itself, or the `.bin` files in the folder in order of names. UserError without any; DamagedError if one of huajin's shards is missing or out of order.
std::vector<TokenShard> open_token_shards(const std::string& path);

// One file of ids, atomically. The width follows from the vocabulary: uint16 up to 65536, else uint32. UserError for an id outside the vocabulary.
void write_token_shard(const std::string& path, std::span<const uint32_t> ids, int64_t vocabulary, int64_t shard = 0, bool last = true);

struct TokenizeResult {
  uint64_t tokens = 0, bytes = 0;
  std::vector<std::string> shards;   // paths written
  std::vector<std::string> skipped;  // empty or binary ones among several files
};
constexpr uint64_t kTokensPerShard = uint64_t{1} << 24;
constexpr size_t kTokenizeChunk = size_t{1} << 20;
// Text files, a newline between where one does not end in one, to OUT/tokens_000000.bin, ... Text goes to the tokenizer in chunks of at most kTokenizeChunk
// bytes that end after a line end between two characters that are no white space where there is one (there every tokenizer begins a new word, so the ids are those
// of the whole text), else after any line end, else between two code points. Memory: one shard and one chunk. Each shard appears whole or not at all.
// UserError: no text, a file that can't be read, shards in OUT already.
TokenizeResult tokenize_to_shards(const std::vector<std::string>& paths, const Tokenizer& tokenizer, const std::string& out_folder,
                                  uint64_t tokens_per_shard = kTokensPerShard,
                                  const std::function<void(uint64_t bytes_done, uint64_t bytes)>& progress = {});

}  // namespace huajin
