#include "huajin/io/token_stream.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <numeric>

#include "huajin/io/file.h"

namespace huajin {
namespace {

std::vector<uint32_t> scrambled_ids(size_t n) {
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<uint32_t>(i * 2654435761u % 251));
  return ids;
}

class TokenStreamTest : public testing::Test {
 protected:
  TokenStreamTest() : folder_(testing::TempDir() + "huajin-stream-XXXXXX") { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~TokenStreamTest() override { remove_tree(folder_); }
  // The same ids in shards of uneven sizes, an empty one among them.
  TokenStream on_disk(const std::vector<uint32_t>& ids) {
    const std::vector<size_t> cuts{0, 1, 1, 37, 500, ids.size()};
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      write_token_shard(folder_ + "/tokens_00000" + std::to_string(i) + ".bin", std::span(ids).subspan(cuts[i], cuts[i + 1] - cuts[i]), 256, static_cast<int64_t>(i),
                        i + 2 == cuts.size());
    return TokenStream(open_token_shards(folder_));
  }
  std::string folder_;
};

TEST_F(TokenStreamTest, ReadsFromShardsWhatItReadsFromMemory) {
  const auto ids = scrambled_ids(1000);
  const TokenStream memory(ids), disk = on_disk(ids);
  ASSERT_EQ(disk.size(), 1000u);
  EXPECT_EQ(disk.greatest(), memory.greatest());
  for (const uint64_t at : {0u, 1u, 2u, 36u, 37u, 38u, 499u, 500u, 999u})
    for (const uint64_t count : {0u, 1u, 2u, 40u, 600u}) {
      if (at + count > 1000) continue;
      std::vector<int64_t> a(count, -1), b(count, -1);
      memory.copy(at, count, a.data()), disk.copy(at, count, b.data());
      EXPECT_EQ(a, b) << at << " " << count;
      for (uint64_t i = 0; i < count; ++i) EXPECT_EQ(b[i], ids[at + i]);
    }
}

TEST_F(TokenStreamTest, PartsShareIdsAndCountTheirBytes) {
  const auto ids = scrambled_ids(1000);
  const TokenStream disk = on_disk(ids), part = disk.part(30, 700).part(5, 600);
  ASSERT_EQ(part.size(), 595u);
  std::vector<int64_t> got(595);
  part.copy(0, 595, got.data());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], ids[35 + i]);
  EXPECT_EQ(part.bytes(*byte_tokenizer()), 595u);
  const auto bpe = train_bpe("the cat the cat the cat then", 260);
  std::vector<uint32_t> text;
  bpe->encode("the cat then the", text);
  EXPECT_EQ(TokenStream(text).bytes(*bpe), 16u);
  EXPECT_LT(text.size(), 16u);
}

}  // namespace
}  // namespace huajin
