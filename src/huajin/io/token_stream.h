// A sequence of token ids: in memory, or in token files that stay on the disk and are read through mmap, so it may be longer than memory.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "huajin/io/token_shard.h"
#include "huajin/io/tokenizer.h"

namespace huajin {

class TokenStream {
 public:
  TokenStream(std::vector<uint32_t> ids);  // NOLINT: ids in memory are a stream
  explicit TokenStream(std::vector<TokenShard> shards);
  uint64_t size() const { return size_; }
  // `count` ids from `at` on; they lie inside the stream.
  void copy(uint64_t at, uint64_t count, int64_t* to) const;
  TokenStream part(uint64_t begin, uint64_t end) const;  // shares the ids
  uint32_t greatest() const;                             // 0 if it is empty
  uint64_t bytes(const Tokenizer& tokenizer) const;      // of the text that the ids stand for

 private:
  template <class See>
  void each(uint64_t at, uint64_t count, bool forget, See see) const;
  std::shared_ptr<const std::vector<uint32_t>> ids_;       // or
  std::shared_ptr<const std::vector<TokenShard>> shards_;  // of which shard i begins at starts_[i]
  std::vector<uint64_t> starts_;
  std::shared_ptr<std::atomic<uint32_t>> copies_ = std::make_shared<std::atomic<uint32_t>>(0);  // made so far
  uint64_t begin_ = 0, size_ = 0;
};

}  // namespace huajin
