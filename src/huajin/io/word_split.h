// GPT-2's split of text into words before BPE: contractions, letters, numbers, other signs, each with one leading space, and white space. Bytes that
// are no UTF-8 are words of their own.
#pragma once
#include <functional>
#include <memory>
#include <string_view>

namespace huajin {

class WordSplit {
 public:
  WordSplit();
  ~WordSplit();
  // Calls `see` with each word, in order; together they are the text. Thread-safe.
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
  size_t next(std::string_view text, size_t at) const;         // end of the word that begins at `at`
  size_t next_unicode(std::string_view text, size_t at) const;  // where bytes beyond ASCII take part
  struct Pattern;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace huajin
