#include <array>
#include <deque>
#include <queue>
#include <span>

#include "huajin/io/bpe.h"
#include "huajin/io/word_map.h"
#include "huajin/io/word_split.h"

namespace huajin {
namespace {

constexpr size_t kShortWord = 24;  // up to here looking at all merges is faster than a heap

// Words that a thread has encoded lately and their ids: most of a text are words that came before. Bounded: begins anew when it is full.
class EncodedWords {
 public:
  static constexpr size_t kMostWords = 1 << 17, kLongest = 64;
  struct Ids {
    uint32_t begin = 0, count = 0;
  };
  void use_for(uint64_t number) {
    if (number != number_ || known_.size() >= kMostWords) clear(), number_ = number;
  }
  const Ids* find(std::string_view word, uint64_t hash) {
    const auto* slot = known_.find(word, hash);
    return slot == nullptr ? nullptr : &slot->value;
  }
  std::span<const uint32_t> ids(const Ids& of) const { return {ids_.data() + of.begin, of.count}; }
  void add(std::string_view word, uint64_t hash, std::span<const uint32_t> ids) {
    if (known_.size() >= kMostWords) clear();
    if (letters_.empty() || letters_.back().size() + word.size() > letters_.back().capacity()) {
      letters_.emplace_back();
      letters_.back().reserve(1 << 16);  // never grows: views into it stay
    }
    std::string& page = letters_.back();
    page += word;
    known_.at({page.data() + page.size() - word.size(), word.size()}, hash) = {static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(ids.size())};
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }

 private:
  void clear() { known_.clear(1 << 12), ids_.clear(), letters_.clear(); }
  WordMap<Ids> known_;
  std::vector<uint32_t> ids_;
  std::deque<std::string> letters_;
  uint64_t number_ = 0;
};

}  // namespace

void BpeTokenizer::encode_word(std::string_view word, std::vector<uint32_t>& ids) const {
  if (word.size() <= kShortWord) encode_short_word(word, ids);
  else encode_long_word(word, ids);
}

// The lowest rank first, of equals the leftmost.
void BpeTokenizer::encode_short_word(std::string_view word, std::vector<uint32_t>& ids) const {
  constexpr int32_t kNoMerge = INT32_MAX;
  std::array<uint32_t, kShortWord> part;
  std::array<int32_t, kShortWord> rank;  // of the merge with the next part
  size_t n = word.size();
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(word[i])); };
  const auto known = [](int64_t r) { return r < 0 ? kNoMerge : static_cast<int32_t>(r); };
  for (size_t i = 0; i < n; ++i) part[i] = byte_ids_[byte(i)];
  for (size_t i = 0; i + 1 < n; ++i) rank[i] = known(byte_ranks_[byte(i) * 256 + byte(i + 1)]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (rank[i] < rank[best]) best = i;
    if (rank[best] == kNoMerge) break;
    part[best] = table_.result(rank[best]);
    for (size_t i = best + 1; i + 1 < n; ++i) part[i] = part[i + 1], rank[i] = rank[i + 1];
    --n;
    if (best + 1 < n) rank[best] = known(table_.rank(part[best], part[best + 1]));
    if (best > 0) rank[best - 1] = known(table_.rank(part[best - 1], part[best]));
  }
  ids.insert(ids.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(n));
}

// The same with a linked list of the word's parts and a heap of possible merges.
void BpeTokenizer::encode_long_word(std::string_view word, std::vector<uint32_t>& ids) const {
  struct Part {
    uint32_t id;
    int32_t before, after;
  };
  thread_local std::vector<Part> parts;
  parts.clear();
  const auto n = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < n; ++i) parts.push_back({byte_ids_[static_cast<unsigned char>(word[static_cast<size_t>(i)])], i - 1, i + 1 < n ? i + 1 : -1});
  using Candidate = std::pair<int64_t, int32_t>;  // rank, left part
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto consider = [&](int32_t left) {
    if (left < 0 || parts[static_cast<size_t>(left)].after < 0) return;
    const int64_t rank = table_.rank(parts[static_cast<size_t>(left)].id, parts[static_cast<size_t>(parts[static_cast<size_t>(left)].after)].id);
    if (rank >= 0) heap.push({rank, left});
  };
  for (int32_t i = 0; i + 1 < n; ++i) consider(i);
  while (!heap.empty()) {
    const auto [rank, left] = heap.top();
    heap.pop();
    Part& a = parts[static_cast<size_t>(left)];
    if (a.after < 0 || table_.rank(a.id, parts[static_cast<size_t>(a.after)].id) != rank) continue;  // overtaken by another merge
    Part& b = parts[static_cast<size_t>(a.after)];
    a.id = table_.result(rank);
    a.after = b.after;
    b.after = -1;
    b.id = UINT32_MAX;  // gone
    if (a.after >= 0) parts[static_cast<size_t>(a.after)].before = left;
    consider(left);
    consider(a.before);
  }
  for (int32_t i = 0; i >= 0; i = parts[static_cast<size_t>(i)].after) ids.push_back(parts[static_cast<size_t>(i)].id);
}

void BpeTokenizer::encode(std::string_view text, std::vector<uint32_t>& ids) const {
  static const WordSplit split;
  thread_local EncodedWords known;
  known.use_for(number_);
  split.each(text, [&](std::string_view whole) {
    for (size_t at = 0; at < whole.size(); at += longest_word_) {
      const std::string_view word = whole.substr(at, longest_word_);
      if (word.size() == 1) {
        ids.push_back(byte_ids_[static_cast<unsigned char>(word[0])]);
        continue;
      }
      if (word.size() > EncodedWords::kLongest) {
        encode_word(word, ids);
        continue;
      }
      const uint64_t hash = word_hash(word);
      if (const auto* found = known.find(word, hash)) {
        const auto copy = known.ids(*found);
        ids.insert(ids.end(), copy.begin(), copy.end());
        continue;
      }
      const size_t begin = ids.size();
      encode_word(word, ids);
      known.add(word, hash, std::span(ids).subspan(begin));
    }
  });
}

}  // namespace huajin
