#include "huajin/io/word_split.h"

#include <array>

#include "huajin/io/unicode_classes.h"
#include "huajin/io/utf8.h"

namespace huajin {
namespace {

enum class WordKind : unsigned char { kSign, kLetter, kNumber, kSpace, kNoUtf8 };  // the first four are UnicodeClass

constexpr std::array<WordKind, 128> ascii_kinds() {
  std::array<WordKind, 128> table{};
  for (int c = 0; c < 128; ++c) {
    WordKind kind = WordKind::kSign;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) kind = WordKind::kLetter;
    else if (c >= '0' && c <= '9') kind = WordKind::kNumber;
    else if (c == ' ' || (c >= 9 && c <= 13)) kind = WordKind::kSpace;
    table[static_cast<size_t>(c)] = kind;
  }
  return table;
}
constexpr std::array<WordKind, 128> kAscii = ascii_kinds();

WordKind beyond_ascii(std::string_view text, size_t at, size_t& size) {
  static const UnicodeClass* low = low_unicode_classes().data();
  const uint32_t point = read_code_point(text, at, size);
  if (point == kNoCodePoint) return WordKind::kNoUtf8;
  return static_cast<WordKind>(point < kLowUnicode ? low[point] : unicode_class(point));
}

// Kind of the character at `at`, and how many bytes it takes.
inline WordKind kind_at(std::string_view text, size_t at, size_t& size) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c >= 128) return beyond_ascii(text, at, size);
  size = 1;
  return kAscii[c];
}

// 's 't 're 've 'm 'll 'd
size_t contraction(std::string_view text, size_t at) {
  if (text[at] != '\'' || at + 1 >= text.size()) return 0;
  const char a = text[at + 1], b = at + 2 < text.size() ? text[at + 2] : '\0';
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

}  // namespace

size_t WordSplit::next(std::string_view text, size_t at) {
  if (const size_t n = contraction(text, at)) return at + n;
  size_t size = 0, end = at, last = at;  // last: where the last character of the run begins
  WordKind kind = kind_at(text, at, size);
  if (text[at] == ' ' && at + 1 < text.size()) {
    size_t next_size = 0;
    const WordKind after = kind_at(text, at + 1, next_size);
    if (after != WordKind::kSpace && after != WordKind::kNoUtf8) kind = after, end = at + 1, size = next_size;
  }
  for (WordKind here = kind; here == kind;) {
    last = end;
    end += size;
    if (end == text.size()) return end;
    here = kind_at(text, end, size);
  }
  return kind == WordKind::kSpace && last > at ? last : end;  // the last white space stays with, or before, the next word
}

}  // namespace huajin
