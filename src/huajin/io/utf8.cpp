#include "huajin/io/utf8.h"

#include <fmt/format.h>

#include "huajin/core/errors.h"

namespace huajin {

uint32_t read_code_point(std::string_view text, size_t at, size_t& size) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t c = byte(at);
  size = 1;
  if (c < 0x80) return c;
  const size_t length = c >= 0xF0 && c < 0xF5 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 0;
  if (length == 0 || at + length > text.size()) return kNoCodePoint;
  uint32_t point = c & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return kNoCodePoint;
    point = point << 6 | (byte(at + i) & 0x3F);
  }
  if ((length == 3 && point < 0x800) || (length == 4 && (point < 0x10000 || point > 0x10FFFF)) || (point >= 0xD800 && point < 0xE000)) return kNoCodePoint;
  size = length;
  return point;
}

uint32_t next_code_point(std::string_view text, size_t& at) {
  size_t size = 0;
  const uint32_t point = read_code_point(text, at, size);
  if (point == kNoCodePoint) throw UserError(fmt::format("the text is not UTF-8 at byte {}; convert it, or use the tokenizer bytes or bpe, which take any bytes", at));
  at += size;
  return point;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t size = 0;
    if (read_code_point(text, at, size) == kNoCodePoint) return at;
    at += size;
  }
  return std::string_view::npos;
}

std::string utf8_of(uint32_t p) {
  std::string s;
  const auto add = [&](uint32_t byte) { s.push_back(static_cast<char>(byte)); };
  if (p < 0x80) add(p);
  else if (p < 0x800) add(0xC0 | p >> 6), add(0x80 | (p & 0x3F));
  else if (p < 0x10000) add(0xE0 | p >> 12), add(0x80 | (p >> 6 & 0x3F)), add(0x80 | (p & 0x3F));
  else add(0xF0 | p >> 18), add(0x80 | (p >> 12 & 0x3F)), add(0x80 | (p >> 6 & 0x3F)), add(0x80 | (p & 0x3F));
  return s;
}

}  // namespace huajin
