#include "huajin/io/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace huajin {
namespace {
namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-run-XXXXXX").string();
    runs_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(runs_); }
  std::string runs_;
};
template <class F>
std::string user_error_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST_F(RunFolderTest, CreateThenOpen) {
  {
    const RunFolder run = RunFolder::create(runs_ + "/deep/er", "mine");
    EXPECT_EQ(run.name(), "mine");
    run.write("recipe.toml", "seed = 1\n");
    run.write("result.json", "{}");
    run.write("result.json", "{\"steps\": 3}");
    EXPECT_EQ(read_file(run.file("result.json")), "{\"steps\": 3}");
  }
  EXPECT_EQ(RunFolder::open(runs_ + "/deep/er/mine/").name(), "mine");
  const std::string message = user_error_of([&] { RunFolder::create(runs_ + "/deep/er", "mine"); });
  EXPECT_NE(message.find("resume"), std::string::npos) << message;
  EXPECT_NE(user_error_of([&] { RunFolder::open(runs_ + "/none"); }).find("no such run folder"), std::string::npos);
  EXPECT_NE(user_error_of([&] { RunFolder::open(runs_); }).find("holds no run"), std::string::npos);
}

TEST_F(RunFolderTest, NamesThatAreNoNames) {
  for (const std::string& name : std::vector<std::string>{"../x", "/abs", "a/b", ".hidden", std::string(300, 'x')})
    EXPECT_THROW(RunFolder::create(runs_, name), UserError) << name;
  const RunFolder first = RunFolder::create(runs_, ""), second = RunFolder::create(runs_, "");
  EXPECT_NE(first.path(), second.path());
}

TEST_F(RunFolderTest, TwoProcessesOnOneRun) {
  const RunFolder run = RunFolder::create(runs_, "mine");
  run.write("recipe.toml", "");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string opened = user_error_of([&] { RunFolder::open(runs_ + "/mine"); });
    const std::string expected = "process " + std::to_string(::getppid());
    ::_exit(opened.find(expected) != opened.npos && opened.find("another process") != opened.npos ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_NE(user_error_of([&] { RunFolder::create(runs_, "mine"); }).find("another process"), std::string::npos);
}

TEST_F(RunFolderTest, AKilledProcessLeavesNoLock) {
  fs::create_directories(runs_ + "/mine/checkpoints");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder run = RunFolder::open(runs_ + "/mine");
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_NE(user_error_of([&] { RunFolder::open(runs_ + "/mine"); }), "");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(user_error_of([&] { RunFolder::open(runs_ + "/mine"); }), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RunFolderTest, UnwritableFolder) {
  std::ofstream(runs_ + "/file") << "x";
  EXPECT_NE(user_error_of([&] { RunFolder::create(runs_ + "/file", "mine"); }).find(runs_ + "/file"), std::string::npos);
  EXPECT_NE(user_error_of([&] { RunFolder::create("/proc/huajin", "mine"); }).find("/proc/huajin"), std::string::npos);
}

TEST_F(RunFolderTest, FindsRuns) {
  fs::create_directories(runs_ + "/a/checkpoints/step-00000001");
  std::ofstream(runs_ + "/a/checkpoints/step-00000001/manifest.json") << "{}";
  EXPECT_EQ(find_run(runs_, "a"), runs_ + "/a");
  EXPECT_EQ(find_run(runs_, runs_ + "/a"), runs_ + "/a");
  EXPECT_EQ(find_run("elsewhere", runs_ + "/a/checkpoints/step-00000001"), runs_ + "/a");
  fs::create_directory(runs_ + "/weights");
  std::ofstream(runs_ + "/weights/model.safetensors") << "x";
  EXPECT_NE(user_error_of([&] { find_run(runs_, runs_ + "/weights"); }).find("--init-from"), std::string::npos);
  EXPECT_NE(user_error_of([&] { find_run(runs_, "b"); }).find("there are: a"), std::string::npos);
  EXPECT_NE(user_error_of([&] { find_run(runs_ + "/none", "b"); }).find("there are none"), std::string::npos);
}

TEST_F(RunFolderTest, LogLinesSurviveAKillAndRewind) {
  const std::string path = runs_ + "/log.jsonl";
  std::ofstream(path) << "{\"run\":\"start\"}\n{\"step\":1}\n{\"step\":2}\n{\"ste";  // killed in the middle of a line
  {
    LogFile log(path);
    log.append("{\"step\":3,\"text\":\"a\nb\"}");
    EXPECT_EQ(log.waiting(), 0);
  }
  EXPECT_EQ(read_file(path), "{\"run\":\"start\"}\n{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"text\":\"a b\"}\n");
  {
    LogFile log(path);
    log.forget_after(1);
    log.append("{\"step\":2,\"again\":true}");
  }
  EXPECT_EQ(read_file(path), "{\"run\":\"start\"}\n{\"step\":1}\n{\"step\":2,\"again\":true}\n");
  std::ofstream(path, std::ios::trunc) << "no newline at all";
  { LogFile log(path); }
  EXPECT_EQ(read_file(path), "");
}

TEST_F(RunFolderTest, LogOutlivesAFullDisk) {
  const std::string path = runs_ + "/log.jsonl";
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string expected;
  {
    LogFile log(path);
    const rlimit small{95, before.rlim_max};  // no whole number of lines
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (int step = 10; step < 30; ++step) {
      log.append("{\"step\":" + std::to_string(step) + "}");
      expected += "{\"step\":" + std::to_string(step) + "}\n";
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_GT(log.waiting(), 5);
    EXPECT_EQ(read_file(path), expected.substr(0, file_size(path)));
    EXPECT_EQ(read_file(path).back(), '\n');
    log.append("{\"step\":30}");
    expected += "{\"step\":30}\n";
    EXPECT_EQ(log.waiting(), 0);
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path), expected);
}

}  // namespace
}  // namespace huajin
