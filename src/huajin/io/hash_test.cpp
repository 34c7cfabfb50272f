#include "huajin/io/hash.h"

#include <gtest/gtest.h>

namespace huajin {
namespace {

// Golden values: Python's xxhash 3, xxhash.xxh3_128_hexdigest(b'...').
TEST(Hash, KnownAnswers) {
  EXPECT_EQ(xxh3_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh3_hex("a"), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(xxh3_hex(std::string(1000, 'x')), "50a1af5a5f2dcf01c0a4877b962cba82");
}

TEST(Hash, PiecesEqualTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 131 % 251);
  Hasher pieces;
  for (size_t at = 0, step = 1; at < text.size(); at += step, step = step * 3 % 997) pieces.update(std::string_view(text).substr(at, step));
  EXPECT_EQ(pieces.hex(), xxh3_hex(text));
  Hasher number;
  number.update(int64_t{0x0102030405060708});
  EXPECT_EQ(number.hex(), xxh3_hex("\x08\x07\x06\x05\x04\x03\x02\x01"));
}

}  // namespace
}  // namespace huajin
