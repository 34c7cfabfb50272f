#include "huajin/io/token_shard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace huajin {
namespace {
namespace fs = std::filesystem;

class TokenShardTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-shard-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& content) const { std::ofstream(at(name), std::ios::binary) << content; }
  std::string folder_;
};

enum class Thrown { kNothing, kUser, kDamaged };
template <class F>
Thrown thrown_by(F&& f, std::string* message = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (message) *message = e.what();
    return e.code() == kExitDamaged ? Thrown::kDamaged : e.code() == kExitUsage ? Thrown::kUser : Thrown::kNothing;
  }
  return Thrown::kNothing;
}

// A file as llm.c writes it, byte by byte: nothing of token_shard.cpp is used.
std::string foreign_file(uint32_t magic, uint32_t version, size_t width, const std::vector<uint32_t>& ids) {
  std::string bytes(1024, '\0');
  const auto set = [&](size_t offset, uint32_t value, size_t n) {
    for (size_t i = 0; i < n; ++i) bytes[offset + i] = static_cast<char>(value >> (8 * i) & 0xFF);
  };
  set(0, magic, 4), set(4, version, 4), set(8, static_cast<uint32_t>(ids.size()), 4);
  bytes.resize(1024 + ids.size() * width);
  for (size_t i = 0; i < ids.size(); ++i) set(1024 + i * width, ids[i], width);
  return bytes;
}

std::vector<uint32_t> shard_ids(const TokenShard& shard) {
  std::vector<uint32_t> ids;
  for (uint64_t i = 0; i < shard.size(); ++i) ids.push_back(shard[i]);
  return ids;
}

TEST_F(TokenShardTest, ReadsFilesOfLlmC) {
  const std::vector<uint32_t> small{0, 1, 50256, 65535, 7}, large{0, 65536, 128255, 3};
  put("v1.bin", foreign_file(20240520, 1, 2, small));
  put("v7.bin", foreign_file(20240801, 7, 4, large));
  const TokenShard v1(at("v1.bin")), v7(at("v7.bin"));
  EXPECT_EQ(shard_ids(v1), small);
  EXPECT_EQ(shard_ids(v7), large);
  EXPECT_EQ(v1.header().vocabulary, 0);
  EXPECT_EQ(v7[2], 128255u);
  v1.require_vocabulary(65536);
  EXPECT_EQ(thrown_by([&] { v1.require_vocabulary(65535); }), Thrown::kUser);
  EXPECT_TRUE(is_token_shard(at("v1.bin")));
  EXPECT_TRUE(is_token_shard(folder_));
  put("a.bin", "\x03 an image's label");
  EXPECT_FALSE(is_token_shard(at("a.bin")));
  EXPECT_FALSE(is_token_shard(folder_));
  EXPECT_FALSE(is_token_shard(at("none")));
}

TEST_F(TokenShardTest, WidthFollowsFromTheVocabularyAndIdsComeBack) {
  for (const auto& [vocabulary, width, magic] : {std::tuple{256, 2, "\x88\xd8\x34\x01"}, {65536, 2, "\x88\xd8\x34\x01"}, {65537, 4, "\xa1\xd9\x34\x01"}, {70000, 4, "\xa1\xd9\x34\x01"}}) {
    const auto top = static_cast<uint32_t>(vocabulary - 1);
    const std::vector<uint32_t> ids{top, 0, 1, top, 255};
    const std::string path = at(std::to_string(vocabulary) + ".bin");
    write_token_shard(path, ids, vocabulary);
    const TokenShard shard(path);
    EXPECT_EQ(shard_ids(shard), ids);
    EXPECT_EQ(shard.header().width, width);
    EXPECT_EQ(shard.header().vocabulary, vocabulary);
    const std::string bytes = read_file(path);
    EXPECT_EQ(bytes.size(), 1024 + ids.size() * static_cast<size_t>(width));  // what llm.c's loader asks for
    EXPECT_EQ(bytes.substr(0, 4), std::string(magic, 4));
    // the ids lie where llm.c reads them
    EXPECT_EQ(bytes.substr(1024), foreign_file(0, 0, static_cast<size_t>(width), ids).substr(1024));
  }
}

TEST_F(TokenShardTest, NeverModulo) {
  const std::vector<uint32_t> ids{1, 65536};
  EXPECT_EQ(thrown_by([&] { write_token_shard(at("a.bin"), ids, 65536); }), Thrown::kUser);
  EXPECT_FALSE(exists(at("a.bin")));
  const std::vector<uint32_t> beyond{70000};
  std::string message;
  EXPECT_EQ(thrown_by([&] { write_token_shard(at("a.bin"), beyond, 70000); }, &message), Thrown::kUser);
  EXPECT_NE(message.find("70000"), message.npos);
}

TEST_F(TokenShardTest, WrongMagicVersionWidthAndSizeAreRefused) {
  const std::vector<uint32_t> ids{5, 6, 7, 8};
  const auto refused = [&](const std::string& bytes) {
    put("x.bin", bytes);
    std::string message;
    const Thrown thrown = thrown_by([&] { TokenShard shard(at("x.bin")); }, &message);
    EXPECT_TRUE(thrown == Thrown::kNothing || message.find(at("x.bin")) != message.npos) << message;
    return thrown;
  };
  const std::string good = foreign_file(20240520, 1, 2, ids);
  EXPECT_EQ(refused(good), Thrown::kNothing);
  EXPECT_EQ(refused(""), Thrown::kUser);
  EXPECT_EQ(refused("abc"), Thrown::kUser);
  EXPECT_EQ(refused(foreign_file(20240521, 1, 2, ids)), Thrown::kUser);
  EXPECT_EQ(refused(foreign_file(20240520, 7, 2, ids)), Thrown::kDamaged);
  EXPECT_EQ(refused(foreign_file(20240801, 1, 4, ids)), Thrown::kDamaged);
  EXPECT_EQ(refused(foreign_file(20240520, 1, 4, ids)), Thrown::kDamaged);  // header says uint16
  EXPECT_EQ(refused(foreign_file(20240801, 7, 2, ids)), Thrown::kDamaged);
  for (size_t size : {size_t{4}, size_t{1023}, size_t{1024}, good.size() - 1}) EXPECT_EQ(refused(good.substr(0, size)), Thrown::kDamaged) << size;
  EXPECT_EQ(refused(good + "x"), Thrown::kDamaged);
  std::string negative = good;
  negative[11] = '\xFF';
  EXPECT_EQ(refused(negative), Thrown::kDamaged);
}

TEST_F(TokenShardTest, EveryBitFlipAndEveryLengthOfOurFileIsFound) {
  const std::vector<uint32_t> ids{5, 6, 7, 8, 69999};
  write_token_shard(at("good.bin"), ids, 70000);
  const std::string good = read_file(at("good.bin"));
  EXPECT_EQ(parse_token_shard(as_bytes(good), "good").count, 5u);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(thrown_by([&] { parse_token_shard(as_bytes(bad), "bad"); }), Thrown::kNothing) << "bit " << bit;
  }
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(thrown_by([&] { parse_token_shard(as_bytes(good).first(size), "bad"); }), Thrown::kNothing) << "size " << size;
}

TEST_F(TokenShardTest, AnotherVocabularyIsRefused) {
  const std::vector<uint32_t> ids{5, 6};
  write_token_shard(at("a.bin"), ids, 300);
  const TokenShard shard(at("a.bin"));
  shard.require_vocabulary(300);
  EXPECT_EQ(thrown_by([&] { shard.require_vocabulary(301); }), Thrown::kUser);
  EXPECT_EQ(thrown_by([&] { shard.require_vocabulary(6); }), Thrown::kUser);
}

std::string sample_text(size_t lines) {
  std::string text;
  for (size_t i = 0; i < lines; ++i) {
    text += "line " + std::to_string(i * 7919 % 10007) + ", caf\xC3\xA9 it's so";
    text += i % 5 == 0 ? "\n\n  indented" : i % 7 == 0 ? " \n" : "";
    text += "\n";
  }
  return text;
}

std::vector<uint32_t> all_ids(const std::string& folder) {
  std::vector<uint32_t> ids;
  for (const TokenShard& shard : open_token_shards(folder))
    for (uint64_t i = 0; i < shard.size(); ++i) ids.push_back(shard[i]);
  return ids;
}

TEST_F(TokenShardTest, ShardsHoldTheIdsOfTheWholeText) {
  const std::string text = sample_text(60000);
  ASSERT_GT(text.size(), kTokenizeChunk + kTokenizeChunk / 2);  // more than one chunk
  put("text", text);
  const auto tokenizer = train_bpe(std::string_view(text).substr(0, 20000), 400);
  const TokenizeResult result = tokenize_to_shards({at("text")}, *tokenizer, at("out"), 300000);
  std::vector<uint32_t> whole;
  tokenizer->encode(text, whole);
  EXPECT_EQ(all_ids(at("out")), whole);
  EXPECT_EQ(result.tokens, whole.size());
  EXPECT_EQ(result.bytes, text.size());
  ASSERT_EQ(result.shards.size(), (whole.size() + 299999) / 300000);
  ASSERT_GT(result.shards.size(), 2u);
  for (size_t i = 0; i + 1 < result.shards.size(); ++i) EXPECT_EQ(TokenShard(result.shards[i]).size(), 300000u);
  EXPECT_EQ(thrown_by([&] { tokenize_to_shards({at("text")}, *tokenizer, at("out")); }), Thrown::kUser);  // never on top of old ones
  fs::remove(result.shards[1]);
  EXPECT_EQ(thrown_by([&] { open_token_shards(at("out")); }), Thrown::kDamaged);
}

TEST_F(TokenShardTest, LastShardMissingIsFoundAndAFullLastShardIsNoExtraFile) {
  put("text", "abcdefgh");
  const TokenizeResult result = tokenize_to_shards({at("text")}, *byte_tokenizer(), at("out"), 4);
  ASSERT_EQ(result.shards.size(), 2u);
  EXPECT_EQ(all_ids(at("out")).size(), 8u);
  fs::remove(result.shards[1]);
  EXPECT_EQ(thrown_by([&] { open_token_shards(at("out")); }), Thrown::kDamaged);
}

TEST_F(TokenShardTest, SeveralFilesAreJoinedLikeACorpusAndBinaryOnesAreLeftOut) {
  put("a", "one");
  put("b", std::string("\0\1\2", 3));
  put("c", "");
  put("d", "two\n");
  const TokenizeResult result = tokenize_to_shards({at("a"), at("b"), at("c"), at("d")}, *byte_tokenizer(), at("out"));
  EXPECT_EQ(byte_tokenizer()->decode(all_ids(at("out"))), "one\ntwo\n");
  EXPECT_EQ(result.skipped, (std::vector<std::string>{at("b"), at("c")}));
  EXPECT_EQ(thrown_by([&] { tokenize_to_shards({at("c")}, *byte_tokenizer(), at("out2")); }), Thrown::kUser);
  EXPECT_EQ(thrown_by([&] { tokenize_to_shards({at("none")}, *byte_tokenizer(), at("out3")); }), Thrown::kUser);
}

uint64_t anonymous_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "RssAnon:") return status >> word, std::stoull(word);
  return 0;
}

// Bytes, and what it was asked and how much memory was in use meanwhile.
class WatchingTokenizer : public Tokenizer {
 public:
  std::string_view kind() const override { return "bytes"; }
  int64_t vocabulary() const override { return 256; }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override {
    torn = torn || (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80;
    most_text = std::max(most_text, text.size());
    most_kb = std::max(most_kb, anonymous_kb());
    for (char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string bytes_of(uint32_t id) const override { return std::string(1, static_cast<char>(id)); }
  std::vector<std::pair<std::string, std::string>> files() const override { return {}; }
  mutable bool torn = false;  // a chunk began within a code point
  mutable size_t most_text = 0;
  mutable uint64_t most_kb = 0;
};

TEST_F(TokenShardTest, MemoryIsOneShardAndOneChunkAlsoWithoutLineEnds) {
  constexpr size_t kSize = size_t{48} << 20;
  {
    std::string unit;  // no line end, code points of two bytes
    while (unit.size() < (size_t{1} << 20)) unit += "\xC3\xA9";
    std::ofstream out(at("text"), std::ios::binary);
    out << 'x';  // so that a multiple of the chunk falls inside a code point
    for (size_t i = 0; i < kSize; i += unit.size()) out << unit;
  }
  WatchingTokenizer tokenizer;
  const uint64_t before = anonymous_kb();
  const TokenizeResult result = tokenize_to_shards({at("text")}, tokenizer, at("out"), uint64_t{1} << 20);
  EXPECT_EQ(result.tokens, kSize + 1);
  EXPECT_LE(tokenizer.most_text, kTokenizeChunk);
  EXPECT_FALSE(tokenizer.torn);
  EXPECT_LE(tokenizer.most_kb, before + 24 * 1024) << "48 MB of text, 96 MB of ids: only a part may be in memory";
}

TEST_F(TokenShardTest, FailedWriteLeavesNoPartOfAShard) {
  put("text", "abcdefgh");
  ScopedDiskHook hook([](const DiskCall& call, size_t&) { return std::string_view(call.name) == "fsync" ? EIO : 0; });
  EXPECT_EQ(thrown_by([&] { tokenize_to_shards({at("text")}, *byte_tokenizer(), at("out")); }), Thrown::kUser);
  EXPECT_FALSE(exists(at("out/tokens_000000.bin")));
}

}  // namespace
}  // namespace huajin
