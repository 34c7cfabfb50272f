#include "huajin/io/token_stream.h"

#include <algorithm>

namespace huajin {
namespace {

constexpr uint64_t kHeldIds = uint64_t{1} << 24;  // of so many all may stay mapped
constexpr uint32_t kCopiesHeld = 32;

}  // namespace

TokenStream::TokenStream(std::vector<uint32_t> ids) : ids_(std::make_shared<const std::vector<uint32_t>>(std::move(ids))), size_(ids_->size()) {}

TokenStream::TokenStream(std::vector<TokenShard> shards) : shards_(std::make_shared<const std::vector<TokenShard>>(std::move(shards))) {
  for (auto& shard : *shards_) starts_.push_back(size_), size_ += shard.size();
}

template <class See>
void TokenStream::each(uint64_t at, uint64_t count, bool forget, See see) const {
  at += begin_;
  if (ids_) {
    for (uint64_t i = 0; i < count; ++i) see((*ids_)[at + i]);
    return;
  }
  auto shard = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), at) - starts_.begin()) - 1;
  for (uint64_t within = at - starts_[shard]; count > 0; ++shard, within = 0) {
    const TokenShard& from = (*shards_)[shard];
    const uint64_t take = std::min(count, from.size() - std::min(within, from.size()));
    for (uint64_t i = 0; i < take; ++i) see(from[within + i]);
    count -= take;
    if (forget) from.forget();
  }
}

void TokenStream::copy(uint64_t at, uint64_t count, int64_t* to) const {
  if (count > 0) each(at, count, false, [&](uint32_t id) { *to++ = id; });
  // The kernel may map 2 MB around each place: let go of them now and then, or all of the file counts as ours in the end.
  if (shards_ && size_ > kHeldIds && copies_->fetch_add(1, std::memory_order_relaxed) % kCopiesHeld == kCopiesHeld - 1)
    for (auto& shard : *shards_) shard.forget();
}

TokenStream TokenStream::part(uint64_t begin, uint64_t end) const {
  TokenStream part = *this;
  part.begin_ += begin, part.size_ = end - begin;
  return part;
}

uint32_t TokenStream::greatest() const {
  uint32_t most = 0;
  if (size_ > 0) each(0, size_, true, [&](uint32_t id) { most = std::max(most, id); });
  return most;
}

uint64_t TokenStream::bytes(const Tokenizer& tokenizer) const {
  std::vector<uint32_t> sizes;
  for (int64_t id = 0; id < tokenizer.vocabulary(); ++id) sizes.push_back(static_cast<uint32_t>(tokenizer.bytes_of(static_cast<uint32_t>(id)).size()));
  uint64_t sum = 0;
  if (size_ > 0) each(0, size_, true, [&](uint32_t id) { sum += sizes[id]; });
  return sum;
}

}  // namespace huajin
