// UTF-8, strict: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace huajin {

constexpr uint32_t kNoCodePoint = UINT32_MAX;
// The code point at `at` and how many bytes it takes; kNoCodePoint and 1 where there is none.
uint32_t read_code_point(std::string_view text, size_t at, size_t& size);
// The code point at `at`, which moves behind it. UserError with the byte offset for anything that is no UTF-8.
uint32_t next_code_point(std::string_view text, size_t& at);
// Offset of the first byte that is no UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);
std::string utf8_of(uint32_t code_point);

}  // namespace huajin
