#include <algorithm>
#include <queue>
#include <unordered_map>

#include "huajin/io/bpe.h"
#include "huajin/io/word_split.h"

namespace huajin {
namespace {

struct Word {
  std::vector<uint32_t> ids;
  int64_t count;
};
struct Candidate {
  int64_t count;
  uint64_t pair;
  bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : pair > o.pair; }  // top: most frequent, then smallest ids
};
uint64_t pair_of(uint32_t left, uint32_t right) { return (uint64_t{left} << 32) | right; }

std::vector<Word> count_words(std::string_view text, size_t longest) {
  std::unordered_map<std::string_view, int64_t> counts;
  const WordSplit split;
  split.each(text, [&](std::string_view word) {
    for (size_t at = 0; at < word.size(); at += longest) counts[word.substr(at, longest)]++;
  });
  std::vector<std::pair<std::string_view, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end());  // the map's order is not ours to rely on
  std::vector<Word> words;
  for (auto& [word, count] : sorted)
    if (word.size() > 1) {
      words.push_back({{}, count});
      for (char c : word) words.back().ids.push_back(static_cast<unsigned char>(c));
    }
  return words;
}

// Counts of all neighbouring pairs, and the words that each is in.
class PairIndex {
 public:
  explicit PairIndex(std::vector<Word>& words) : words_(words) {
    for (uint32_t w = 0; w < words.size(); ++w) add_word(w, 1);
    for (auto& [pair, entry] : pairs_) heap_.push({entry.count, pair});
  }
  // The most frequent pair, or false if none comes twice.
  bool pop(uint64_t& pair) {
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[top.pair].count;
      if (count == top.count && count > 1) return pair = top.pair, true;
      if (count > 1 && count < top.count) heap_.push({count, top.pair});  // it has lost some since: once more, at its place
    }
    return false;
  }
  void merge(uint64_t pair, uint32_t result) {
    std::vector<uint32_t> holders = std::move(pairs_[pair].words);
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
    changed_.clear();
    for (uint32_t w : holders) {
      add_word(w, -1);
      replace(words_[w].ids, static_cast<uint32_t>(pair >> 32), static_cast<uint32_t>(pair), result);
      add_word(w, 1);
    }
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (uint64_t key : changed_)
      if (pairs_[key].count > 1) heap_.push({pairs_[key].count, key});
    pairs_.erase(pair);
  }

 private:
  struct Entry {
    int64_t count = 0;
    std::vector<uint32_t> words;
  };
  void add_word(uint32_t w, int sign) {
    const Word& word = words_[w];
    for (size_t i = 0; i + 1 < word.ids.size(); ++i) {
      const uint64_t key = pair_of(word.ids[i], word.ids[i + 1]);
      Entry& entry = pairs_[key];
      entry.count += sign * word.count;
      if (sign > 0) {
        if (entry.words.empty() || entry.words.back() != w) entry.words.push_back(w);
        changed_.push_back(key);
      }
    }
  }
  static void replace(std::vector<uint32_t>& ids, uint32_t left, uint32_t right, uint32_t result) {
    size_t to = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool here = ids[i] == left && i + 1 < ids.size() && ids[i + 1] == right;
      ids[to++] = here ? result : ids[i];
      if (here) ++i;
    }
    ids.resize(to);
  }
  std::vector<Word>& words_;
  std::unordered_map<uint64_t, Entry> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<uint64_t> changed_;
};

}  // namespace

std::vector<MergeTable::Merge> learn_merges(std::string_view text, int64_t vocabulary, size_t longest_word) {
  std::vector<Word> words = count_words(text, longest_word);
  PairIndex index(words);
  std::vector<MergeTable::Merge> merges;
  uint64_t pair = 0;
  for (uint32_t next = 256; next < vocabulary && index.pop(pair); ++next) {
    merges.push_back({static_cast<uint32_t>(pair >> 32), static_cast<uint32_t>(pair), next});
    index.merge(pair, next);
  }
  return merges;
}

}  // namespace huajin
