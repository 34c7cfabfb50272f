#include "huajin/io/utf8.h"

#include <gtest/gtest.h>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

// Table 3-7 of the Unicode standard (well-formed byte sequences), written down as ranges: the reference for the decoder.
struct WellFormed {
  size_t size;
  unsigned low[4], high[4];
};
constexpr WellFormed kTable[] = {
    {1, {0x00}, {0x7F}},
    {2, {0xC2, 0x80}, {0xDF, 0xBF}},
    {3, {0xE0, 0xA0, 0x80}, {0xE0, 0xBF, 0xBF}},
    {3, {0xE1, 0x80, 0x80}, {0xEC, 0xBF, 0xBF}},
    {3, {0xED, 0x80, 0x80}, {0xED, 0x9F, 0xBF}},
    {3, {0xEE, 0x80, 0x80}, {0xEF, 0xBF, 0xBF}},
    {4, {0xF0, 0x90, 0x80, 0x80}, {0xF0, 0xBF, 0xBF, 0xBF}},
    {4, {0xF1, 0x80, 0x80, 0x80}, {0xF3, 0xBF, 0xBF, 0xBF}},
    {4, {0xF4, 0x80, 0x80, 0x80}, {0xF4, 0x8F, 0xBF, 0xBF}},
};
size_t well_formed_size(std::string_view text) {
  for (const WellFormed& row : kTable) {
    bool fits = row.size <= text.size();
    for (size_t i = 0; fits && i < row.size; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      fits = byte >= row.low[i] && byte <= row.high[i];
    }
    if (fits) return row.size;
  }
  return 0;
}

TEST(Utf8, AgreesWithTheTableOfWellFormedSequences) {
  const unsigned edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xED, 0xF0, 0xF4, 0xFF};
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned a : edges)
      for (unsigned b : edges)
        for (unsigned c : edges)
          for (size_t size = 1; size <= 4; ++size) {
            const char bytes[4] = {static_cast<char>(first), static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
            const std::string_view text(bytes, size);
            const size_t want = well_formed_size(text);
            size_t got = 0;
            const uint32_t point = read_code_point(text, 0, got);
            ASSERT_EQ(point != kNoCodePoint, want > 0) << first << ' ' << a << ' ' << b << ' ' << c << " size " << size;
            ASSERT_EQ(got, want > 0 ? want : 1);
            ASSERT_TRUE(want == 0 || utf8_of(point) == text.substr(0, want));
          }
}

TEST(Utf8, EveryCodePointComesBack) {
  for (uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    const std::string text = utf8_of(point);
    size_t size = 0;
    ASSERT_EQ(read_code_point(text, 0, size), point);
    ASSERT_EQ(size, text.size());
  }
}

TEST(Utf8, OverlongSurrogatesAndTruncatedAreFoundAtTheirByte) {
  const std::string bad[] = {"\xC0\x80",          "\xC1\xBF",             "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",  // overlong
                             "\xED\xA0\x80",      "\xED\xBF\xBF",                                                                                  // surrogates
                             "\xF4\x90\x80\x80",  "\xF5\x80\x80\x80",     "\xFF",                                                                  // beyond U+10FFFF
                             "\xC3",              "\xE2\x82",             "\xF0\x9F\x98", "\x80",         "\xE2(\xA1"};                                // cut off, stray, broken
  for (const std::string& bytes : bad) {
    const std::string text = "ab\xC3\xA9" + bytes;
    EXPECT_EQ(find_invalid_utf8(text), 4u) << bytes.size();
    size_t at = 4;
    try {
      next_code_point(text, at);
      ADD_FAILURE() << "taken";
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("byte 4"), std::string::npos) << e.what();
    }
    EXPECT_EQ(at, 4u);
  }
  EXPECT_EQ(find_invalid_utf8("ab\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8(""), std::string_view::npos);
}

}  // namespace
}  // namespace huajin
