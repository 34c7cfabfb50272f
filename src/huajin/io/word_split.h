// GPT-2's split of text into words before BPE (Radford et al., 2019): contractions, letters, numbers, other signs, each with one leading space, and white
// space. It is the pattern 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ as a scanner. A run of bytes that are no UTF-8 is a
// word of its own.
#pragma once
#include <string_view>

namespace huajin {

class WordSplit {
 public:
  // Calls `see` with each word, in order; together they are the text. Thread-safe, O(bytes).
  template <class See>
  void each(std::string_view text, See&& see) const {
    size_t at = 0;
    while (at < text.size()) {
      const size_t end = next(text, at);
      see(text.substr(at, end - at));
      at = end;
    }
  }

 private:
  static size_t next(std::string_view text, size_t at);  // end of the word that begins at `at`
};

}  // namespace huajin
