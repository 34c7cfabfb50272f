#include "huajin/io/word_split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace huajin {
namespace {

enum Kind : unsigned char { kSign, kLetter, kDigit, kSpace, kBeyond };

constexpr std::array<Kind, 256> kinds() {
  std::array<Kind, 256> table{};
  for (int c = 0; c < 256; ++c) {
    Kind kind = kSign;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) kind = kLetter;
    else if (c >= '0' && c <= '9') kind = kDigit;
    else if (c == ' ' || (c >= 9 && c <= 13)) kind = kSpace;
    else if (c >= 128) kind = kBeyond;
    table[static_cast<size_t>(c)] = kind;
  }
  return table;
}
constexpr std::array<Kind, 256> kKind = kinds();
Kind kind_of(char c) { return kKind[static_cast<unsigned char>(c)]; }

// 's 't 're 've 'm 'll 'd
size_t contraction(std::string_view text, size_t at) {
  if (text[at] != '\'' || at + 1 >= text.size()) return 0;
  const char a = text[at + 1], b = at + 2 < text.size() ? text[at + 2] : '\0';
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

}  // namespace

struct WordSplit::Pattern {
  pcre2_code* code = nullptr;
  ~Pattern() { pcre2_code_free(code); }
};

WordSplit::WordSplit() : pattern_(std::make_unique<Pattern>()) {
  const char* text = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  int error = 0;
  PCRE2_SIZE offset = 0;
  pattern_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED, &error,
                                 &offset, nullptr);
  if (pattern_->code == nullptr) throw std::logic_error("word split: the pattern does not compile");
  pcre2_jit_compile(pattern_->code, PCRE2_JIT_COMPLETE);
}
WordSplit::~WordSplit() = default;

size_t WordSplit::next(std::string_view text, size_t at) const {
  if (size_t n = contraction(text, at)) return at + n;
  size_t i = at + (text[at] == ' ' && at + 1 < text.size() && kind_of(text[at + 1]) != kSpace ? 1 : 0);
  const Kind kind = kind_of(text[i]);
  if (kind == kBeyond) return next_unicode(text, at);
  size_t end = i;
  while (end < text.size() && kind_of(text[end]) == kind) ++end;
  if (end < text.size() && kind_of(text[end]) == kBeyond) return next_unicode(text, at);
  if (kind != kSpace || end == text.size()) return end;
  return end - at > 1 ? end - 1 : end;  // the last white space stays with, or before, the next word
}

size_t WordSplit::next_unicode(std::string_view text, size_t at) const {
  thread_local std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match{pcre2_match_data_create(2, nullptr), pcre2_match_data_free};
  // A window, so that a run of one kind costs no more than its length; it is widened while the word reaches its end.
  for (size_t window = 256;; window *= 4) {
    const size_t size = std::min(text.size() - at, window);
    const int found = pcre2_match(pattern_->code, reinterpret_cast<PCRE2_SPTR>(text.data() + at), size, 0, PCRE2_ANCHORED, match.get(), nullptr);
    if (found <= 0) {  // not UTF-8: as many bytes as cannot begin a word
      size_t end = at + 1;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      return end;
    }
    const size_t length = pcre2_get_ovector_pointer(match.get())[1];
    if (length + 8 < size || size == text.size() - at) return at + std::max<size_t>(length, 1);
  }
}

}  // namespace huajin
