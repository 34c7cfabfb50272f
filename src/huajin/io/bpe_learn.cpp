#include <algorithm>
#include <queue>

#include "huajin/io/bpe.h"
#include "huajin/io/word_map.h"
#include "huajin/io/word_split.h"

namespace huajin {
namespace {

struct Word {
  size_t begin;  // of its ids
  uint32_t size;
  int64_t count;
};
struct Candidate {
  int64_t count;
  uint64_t pair;
  uint32_t entry;
  bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : pair > o.pair; }  // top: most frequent, then smallest ids
};
uint64_t pair_of(uint32_t left, uint32_t right) { return (uint64_t{left} << 32) | right; }

// Every different word of two bytes or more, how often it occurs, and its bytes as ids.
void count_words(std::string_view text, size_t longest, std::vector<Word>& words, std::vector<uint32_t>& ids) {
  WordMap<int64_t> counts(1 << 14);
  const WordSplit split;
  split.each(text, [&](std::string_view word) {
    for (size_t at = 0; at < word.size(); at += longest) {
      const std::string_view part = word.substr(at, longest);
      if (part.size() > 1) ++counts[part];
    }
  });
  for (auto& slot : counts.slots()) {  // their order has no influence: counts are sums, and of equal pairs the smaller comes first
    if (slot.word.empty()) continue;
    words.push_back({ids.size(), static_cast<uint32_t>(slot.word.size()), slot.value});
    for (char c : slot.word) ids.push_back(static_cast<unsigned char>(c));
  }
}

// Counts of all neighbouring pairs, and the words that each may be in.
class PairIndex {
 public:
  PairIndex(std::vector<Word>& words, std::vector<uint32_t>& ids) : words_(words), ids_(ids), keys_(1 << 16, kFree), places_(1 << 16) {
    for (uint32_t w = 0; w < words.size(); ++w) change_word(w, 1);
    push_from(0);
  }
  // The most frequent pair, or false if none comes twice.
  bool pop(uint64_t& pair) {
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const int64_t count = entries_[top.entry].count;
      if (count == top.count) return pair = top.pair, true;
      if (count > 1) heap_.push({count, top.pair, top.entry});  // it has lost some since: once more, at its place
    }
    return false;
  }
  void merge(uint64_t pair, uint32_t result) {
    std::vector<uint32_t> holders = std::move(entries_[place(pair)].words);
    const size_t before = entries_.size();
    const auto left = static_cast<uint32_t>(pair >> 32), right = static_cast<uint32_t>(pair);
    for (uint32_t w : holders) {  // one that is named twice has nothing left to replace
      if (left != right) {
        merge_in(w, left, right, result);
      } else {  // in "aaaa" pairs overlap: all of the word's are counted again
        change_word(w, -1);
        replace(words_[w], left, right, result);
        change_word(w, 1);
      }
    }
    push_from(before);  // only pairs with the new token have become more frequent
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  struct Entry {
    uint64_t pair;
    int64_t count = 0;
    std::vector<uint32_t> words;  // every one that has it, and some that had
  };
  // The pair's entry, made if need be.
  uint32_t place(uint64_t pair) {
    size_t mask = keys_.size() - 1, at = hash(pair) & mask;
    while (keys_[at] != kFree && keys_[at] != pair) at = (at + 1) & mask;
    if (keys_[at] == pair) return places_[at];
    entries_.push_back({pair, 0, {}});
    keys_[at] = pair, places_[at] = static_cast<uint32_t>(entries_.size() - 1);
    if (entries_.size() * 2 > keys_.size()) grow();
    return static_cast<uint32_t>(entries_.size() - 1);
  }
  void grow() {
    keys_.assign(keys_.size() * 2, kFree);
    places_.assign(keys_.size(), 0);
    const size_t mask = keys_.size() - 1;
    for (uint32_t e = 0; e < entries_.size(); ++e) {
      size_t at = hash(entries_[e].pair) & mask;
      while (keys_[at] != kFree) at = (at + 1) & mask;
      keys_[at] = entries_[e].pair, places_[at] = e;
    }
  }
  static size_t hash(uint64_t x) {
    x *= 0x9e3779b97f4a7c15ULL;
    return x ^ (x >> 32);
  }
  void push_from(size_t first) {
    for (size_t e = first; e < entries_.size(); ++e)
      if (entries_[e].count > 1) heap_.push({entries_[e].count, entries_[e].pair, static_cast<uint32_t>(e)});
  }
  void lose(uint32_t left, uint32_t right, int64_t count) { entries_[place(pair_of(left, right))].count -= count; }
  void gain(uint32_t left, uint32_t right, int64_t count, uint32_t w) {
    Entry& entry = entries_[place(pair_of(left, right))];
    entry.count += count;
    if (entry.words.empty() || entry.words.back() != w) entry.words.push_back(w);
  }
  void change_word(uint32_t w, int sign) {
    const Word& word = words_[w];
    const uint32_t* ids = &ids_[word.begin];
    for (uint32_t i = 0; i + 1 < word.size; ++i)
      if (sign > 0) gain(ids[i], ids[i + 1], word.count, w);
      else lose(ids[i], ids[i + 1], word.count);
  }
  // left != right, so their occurrences don't overlap: each changes itself and the pairs at its two sides.
  void merge_in(uint32_t w, uint32_t left, uint32_t right, uint32_t result) {
    Word& word = words_[w];
    uint32_t* ids = &ids_[word.begin];
    const uint32_t n = word.size;
    const auto here = [&](uint32_t i) { return i + 1 < n && ids[i] == left && ids[i + 1] == right; };
    uint32_t to = 0, merged_until = UINT32_MAX;
    for (uint32_t i = 0; i < n;) {
      if (!here(i)) {
        ids[to++] = ids[i++];
        continue;
      }
      lose(left, right, word.count);
      if (i > 0) {  // ids[to - 1] is what stands before it by now
        lose(merged_until == i ? right : ids[to - 1], left, word.count);
        gain(ids[to - 1], result, word.count, w);
      }
      if (i + 2 < n && !here(i + 2)) {
        lose(right, ids[i + 2], word.count);
        gain(result, ids[i + 2], word.count, w);
      }
      ids[to++] = result;
      i += 2;
      merged_until = i;
    }
    word.size = to;
  }
  void replace(Word& word, uint32_t left, uint32_t right, uint32_t result) {
    uint32_t* ids = &ids_[word.begin];
    uint32_t to = 0;
    for (uint32_t i = 0; i < word.size; ++i) {
      const bool here = ids[i] == left && i + 1 < word.size && ids[i + 1] == right;
      ids[to++] = here ? result : ids[i];
      if (here) ++i;
    }
    word.size = to;
  }
  std::vector<Word>& words_;
  std::vector<uint32_t>& ids_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> keys_;    // of the table from pairs to entries
  std::vector<uint32_t> places_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

std::vector<MergeTable::Merge> learn_merges(std::string_view text, int64_t vocabulary, size_t longest_word) {
  std::vector<Word> words;
  std::vector<uint32_t> ids;
  count_words(text, longest_word, words, ids);
  PairIndex index(words, ids);
  std::vector<MergeTable::Merge> merges;
  uint64_t pair = 0;
  for (uint32_t next = 256; next < vocabulary && index.pop(pair); ++next) {
    merges.push_back({static_cast<uint32_t>(pair >> 32), static_cast<uint32_t>(pair), next});
    index.merge(pair, next);
  }
  return merges;
}

}  // namespace huajin
