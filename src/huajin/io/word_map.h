// A hash table of short byte strings, for counting and remembering the words of a text: no allocation a word, linear probing, hashes beside the keys.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace huajin {

inline uint64_t word_hash(std::string_view word) {
  const auto eight = [](const char* p) {
    uint64_t x;
    std::memcpy(&x, p, 8);
    return x;
  };
  const auto mixed = [](uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15ULL) * (b ^ 0xd1b54a32d192ed03ULL);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  const char* p = word.data();
  size_t n = word.size();
  uint64_t seed = n;
  for (; n > 16; p += 8, n -= 8) seed = mixed(seed, eight(p));
  if (n >= 8) return mixed(seed ^ eight(p), eight(p + n - 8));
  uint64_t tail = 0;
  for (size_t i = 0; i < n; ++i) tail |= uint64_t{static_cast<unsigned char>(p[i])} << (8 * i);
  return mixed(seed, tail);
}

// Keys are views: what they point to must outlive the table.
template <class Value>
class WordMap {
 public:
  struct Slot {
    std::string_view word;  // empty: a free place
    Value value{};
  };
  explicit WordMap(size_t expected = 1024) { clear(expected); }
  size_t size() const { return size_; }
  void clear(size_t expected = 1024) {
    slots_.assign(std::bit_ceil(expected * 2), Slot{});
    hashes_.assign(slots_.size(), 0);
    size_ = 0;
  }
  // The place of a word that is there, or null.
  Slot* find(std::string_view word, uint64_t hash) {
    Slot& slot = slots_[place(word, hash)];
    return slot.word.empty() ? nullptr : &slot;
  }
  // The word's value, which is Value{} if the word is new. `word` is not empty.
  Value& operator[](std::string_view word) { return at(word, word_hash(word)); }
  Value& at(std::string_view word, uint64_t hash) {
    size_t where = place(word, hash);
    if (slots_[where].word.empty()) {
      if ((size_ + 1) * 2 > slots_.size()) grow(), where = place(word, hash);
      slots_[where].word = word;
      hashes_[where] = hash;
      ++size_;
    }
    return slots_[where].value;
  }
  const std::vector<Slot>& slots() const { return slots_; }  // free ones too

 private:
  size_t place(std::string_view word, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t where = hash & mask;
    while (!slots_[where].word.empty() && (hashes_[where] != hash || slots_[where].word != word)) where = (where + 1) & mask;
    return where;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    std::vector<uint64_t> old_hashes(old.size(), 0);
    old.swap(slots_), old_hashes.swap(hashes_);
    const size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i].word.empty()) continue;
      size_t where = old_hashes[i] & mask;
      while (!slots_[where].word.empty()) where = (where + 1) & mask;
      slots_[where] = old[i], hashes_[where] = old_hashes[i];
    }
  }
  std::vector<Slot> slots_;
  std::vector<uint64_t> hashes_;
  size_t size_ = 0;
};

}  // namespace huajin
