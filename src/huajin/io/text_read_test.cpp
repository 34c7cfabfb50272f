#include "huajin/io/text_read.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "huajin/core/errors.h"

namespace huajin {
namespace {
namespace fs = std::filesystem;

class TextReadTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-text-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& content) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << content;
  }
  // The message of the UserError, which must name `path`.
  static std::string refused(const std::string& path, uint64_t most = uint64_t{1} << 32) {
    try {
      read_corpus(path, most);
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
      return e.what();
    }
    return "";
  }
  std::string folder_;
};

TEST_F(TextReadTest, FolderInOrderOfNamesWithNewlinesBetween) {
  put("b.txt", "two");
  put("a/z.txt", "one\n");
  put("c.txt", "three\n");
  put(".hidden", "not this\n");
  const Corpus corpus = read_corpus(folder_);
  EXPECT_EQ(corpus.text, "one\ntwo\nthree\n");
  EXPECT_EQ(corpus.files, (std::vector<std::string>{at("a/z.txt"), at("b.txt"), at("c.txt")}));
  EXPECT_TRUE(corpus.skipped.empty());
}

TEST_F(TextReadTest, BinaryAndEmptyOnesAreSkippedInAFolder) {
  put("a.txt", "text\n");
  put("junk.o", std::string("\x7F" "ELF\0\0\1\2", 8));
  put("empty", "");
  const Corpus corpus = read_corpus(folder_);
  EXPECT_EQ(corpus.text, "text\n");
  EXPECT_EQ(corpus.skipped, (std::vector<std::string>{at("empty"), at("junk.o")}));
  EXPECT_EQ(read_corpus(at("junk.o")).text.size(), 8u);  // alone: taken at its word
}

TEST_F(TextReadTest, NothingToReadIsSaid) {
  put("empty", "");
  EXPECT_NE(refused(at("empty")).find("empty"), std::string::npos);
  EXPECT_NE(refused(at("none")).find("no such file"), std::string::npos);
  EXPECT_NE(refused(folder_).find("without text"), std::string::npos);
  put("junk", std::string(10, '\0'));
  EXPECT_NE(refused(folder_).find("2 empty or binary"), std::string::npos);
  fs::create_directories(at("inner"));
  EXPECT_NE(refused(at("inner")), "");
}

TEST_F(TextReadTest, MoreThanAllowedIsRefusedAndASingleFileIsKeptAsItIs) {
  put("x/a", "12345");
  put("x/b", "67890");
  EXPECT_NE(refused(at("x"), 7), "");
  EXPECT_NE(refused(at("x/a"), 4), "");
  EXPECT_EQ(read_corpus(at("x/a"), 5).text, "12345");  // no newline added
}

TEST_F(TextReadTest, UnreadableAndNoRegularFile) {
  put("secret", "text");
  ::chmod(at("secret").c_str(), 0);
  EXPECT_TRUE(::access(at("secret").c_str(), R_OK) == 0 || !refused(at("secret")).empty());  // root may read it
  fs::create_symlink(at("gone"), at("link"));
  EXPECT_NE(refused(at("link")), "");
  fs::create_symlink(at("loop"), at("loop"));
  EXPECT_NE(refused(at("loop")), "");
  EXPECT_NE(refused("/dev/zero"), "");
}

TEST_F(TextReadTest, OnlyWantedEndingsUpToALimit) {
  put("a.h", "1234\n");
  put("b.cpp", "no\n");
  put("c.h", "5678\n");
  EXPECT_EQ(read_corpus_of(folder_, {".h"}, 100).text, "1234\n5678\n");
  EXPECT_EQ(read_corpus_of(folder_, {".h"}, 9).text, "1234\n");
  EXPECT_THROW(read_corpus_of(folder_, {".py"}, 100), UserError);
}

TEST_F(TextReadTest, LastTenthBeginsWithALine) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "0123456789\n";
  const size_t at = last_tenth(text);
  EXPECT_EQ(text[at - 1], '\n');
  EXPECT_GE(at, text.size() * 9 / 10);
  EXPECT_LT(at, text.size() * 9 / 10 + 200);
  EXPECT_EQ(last_tenth(std::string(1000, 'x')), 900u);
  EXPECT_LE(last_tenth("ab"), 2u);
  EXPECT_EQ(last_tenth(""), 0u);
}

}  // namespace
}  // namespace huajin
