#include "huajin/io/file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace huajin {
namespace {
namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-file-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& content) const { std::ofstream(at(name), std::ios::binary) << content; }
  std::string folder_;
};

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(FileTest, ReadsWholeFileAndView) {
  const std::string content("a\0b\nc", 5);
  put("x", content);
  put("empty", "");
  EXPECT_EQ(read_file(at("x")), content);
  EXPECT_EQ(as_text(FileView(at("x")).bytes()), content);
  EXPECT_EQ(FileView(at("empty")).bytes().size(), 0u);
  EXPECT_EQ(read_file(at("empty")), "");
}

TEST_F(FileTest, EveryReadErrorNamesThePath) {
  put("big", std::string(100, 'x'));
  for (const std::string& message :
       {error_of([&] { read_file(at("none")); }), error_of([&] { FileView view(at("none")); }), error_of([&] { read_file(folder_); }),
        error_of([&] { read_file(at("big"), 99); }), error_of([&] { read_file("/dev/zero"); })})
    EXPECT_TRUE(message.find(folder_) != message.npos || message.find("/dev/zero") != message.npos) << message;
  EXPECT_NE(error_of([&] { read_file(at("none")); }).find("No such file"), std::string::npos);
}

TEST_F(FileTest, ConfinesNames) {
  fs::create_directory(at("inside"));
  put("inside/real", "x");
  fs::create_symlink("/etc/passwd", at("inside/out"));
  fs::create_symlink("..", at("inside/up"));
  fs::create_symlink("real", at("inside/link"));
  const std::string root = at("inside");
  for (const std::string name : {"/etc/passwd", "../x", "a/../../x", "..", "", "out", "up/secret", "a/.."})
    EXPECT_THROW(confined(root, name, "index.json"), DamagedError) << name;
  EXPECT_THROW(confined(root, std::string_view("a\0b", 3), "index.json"), DamagedError);
  EXPECT_EQ(confined(root, "real", "i"), root + "/real");
  EXPECT_EQ(confined(root, "link", "i"), root + "/link");
  EXPECT_EQ(confined(root, "not/yet", "i"), root + "/not/yet");
  const std::string message = error_of([&] { confined(root, "../x", "index.json"); });
  EXPECT_NE(message.find("index.json"), std::string::npos);
  EXPECT_NE(message.find("../x"), std::string::npos);
}

TEST_F(FileTest, AtomicWriteLeavesOldOrNewAfterEveryCall) {
  for (const bool torn : {false, true})
    for (int stop = 0;; ++stop) {
      write_atomically(at("f"), "old content");
      int calls = 0;
      bool stopped = false;
      {
        ScopedDiskHook hook([&](const DiskCall&, size_t& allowed) {
          if (calls++ < stop) return 0;
          if (torn && !stopped && allowed > 1) return stopped = true, allowed /= 2, 0;
          stopped = true;
          return EIO;
        });
        try {
          write_atomically(at("f"), "new content, longer");
        } catch (const WriteError& e) {
          EXPECT_NE(std::string(e.what()).find(folder_), std::string::npos);
        }
      }
      const std::string now = read_file(at("f"));
      EXPECT_TRUE(now == "old content" || now == "new content, longer") << stop << ": " << now;
      if (!stopped) {
        EXPECT_EQ(now, "new content, longer");
        EXPECT_GE(stop, 5);  // open, write, fsync, rename, fsync folder
        break;
      }
    }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, ShortWritesAreContinued) {
  ScopedDiskHook hook([](const DiskCall&, size_t& allowed) { return allowed = std::min<size_t>(allowed, 3), 0; });
  write_atomically(at("f"), "0123456789");
  EXPECT_EQ(read_file(at("f")), "0123456789");
}

TEST_F(FileTest, WriterRefusesAFileThatExists) {
  put("x", "precious");
  EXPECT_THROW(FileWriter w(at("x")), WriteError);
  EXPECT_EQ(read_file(at("x")), "precious");
}

// A limit on file sizes is a full disk that every user can make: write() fails half way with EFBIG.
TEST_F(FileTest, FullDiskIsAnErrorNotAnAbort) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  write_atomically(at("f"), "old");
  const rlimit small{10000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_NE(error_of([&] { write_atomically(at("f"), std::string(20000, 'x')); }).find(folder_), std::string::npos);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(at("f")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, DiskTooSmallIsFoundBefore) {
  EXPECT_THROW(require_free_disk(folder_, UINT64_MAX, "a checkpoint"), WriteError);
  EXPECT_NO_THROW(require_free_disk(at("not/yet/there"), 1, "a checkpoint"));
}

TEST_F(FileTest, NeverWritesThroughALink) {
  put("precious", "x");
  fs::create_symlink("precious", at("link"));
  EXPECT_THROW(FileWriter w(at("link")), WriteError);
  write_atomically(at("link"), "new");  // replaces the link
  EXPECT_EQ(read_file(at("precious")), "x");
}

TEST_F(FileTest, TmpfsThatIsTooSmall) {
  fs::create_directory(at("small"));
  if (::mount("tmpfs", at("small").c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "tmpfs can't be mounted here";
  write_atomically(at("small/f"), "old");
  int error = 0;
  try {
    write_atomically(at("small/f"), std::string(1 << 20, 'x'));
  } catch (const WriteError& e) {
    error = e.error_number();
  }
  EXPECT_EQ(error, ENOSPC);
  EXPECT_EQ(read_file(at("small/f")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(at("small")), {}), 1);
  ::umount(at("small").c_str());
}

TEST_F(FileTest, UnwritableFolderSaysSo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::create_directory(at("locked"));
  ::chmod(at("locked").c_str(), 0555);
  EXPECT_NE(error_of([&] { write_atomically(at("locked/f"), "x"); }).find("may write"), std::string::npos);
}

}  // namespace
}  // namespace huajin
