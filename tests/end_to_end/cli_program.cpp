#include "tests/end_to_end/cli_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

namespace huajin::test {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void become(const std::vector<std::string>& arguments, const HowToRun& how, int out, int err) {
  dup2(out, STDOUT_FILENO), dup2(err, STDERR_FILENO);
  if (how.memory_bytes > 0) {
    const rlimit limit{how.memory_bytes, how.memory_bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  setenv("TERM", "dumb", 1);
  for (auto& [key, value] : how.environment) setenv(key.c_str(), value.c_str(), 1);
  std::vector<char*> pointers;
  for (auto& word : how.launcher) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(const_cast<char*>(HUAJIN_PROGRAM));
  for (auto& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  _exit(127);
}

}  // namespace

Ran run_huajin(const std::vector<std::string>& arguments, const HowToRun& how) {
  int out[2], err[2];
  Ran ran;
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return ran;
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) become(arguments, how, out[1], err[1]);
  close(out[1]), close(err[1]);
  std::thread meanwhile;
  if (how.meanwhile) meanwhile = std::thread([&] { how.meanwhile(child); });
  pollfd ends[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[2] = {&ran.out, &ran.err};
  bool killed = false;
  for (int open = 2; open > 0;) {
    poll(ends, 2, 50);
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd < 0 || (ends[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      char buffer[65536];
      const ssize_t n = read(ends[i].fd, buffer, sizeof buffer);
      if (n > 0) texts[i]->append(buffer, static_cast<size_t>(n));
      if (n == 0) ends[i].fd = -1, --open;
    }
    if (!killed && since(start) > how.timeout_seconds) kill(child, SIGKILL), killed = true;
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  ran.seconds = since(start);
  if (meanwhile.joinable()) meanwhile.join();
  close(out[0]), close(err[0]);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  ran.peak_rss_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  return ran;
}

TemporaryFolder::TemporaryFolder() {
  const char* base = getenv("TMPDIR");
  path_ = std::string(base == nullptr ? "/tmp" : base) + "/huajin-cli-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) path_.clear();
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
}
std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

std::string words(size_t bytes, unsigned seed) {
  static const char* const kWords[] = {"the", "train", "model", "runs", "until", "budget", "ends", "and", "then", "it", "rests", "."};
  std::string text;
  uint64_t state = seed;
  while (text.size() < bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    text += kWords[(state >> 33) % 12];
    text += (state >> 40) % 9 == 0 ? '\n' : ' ';
  }
  text.resize(bytes);
  return text;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (auto& entry : std::filesystem::directory_iterator(folder, failed)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string json_value(const std::string& json, const std::string& key) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object() || !parsed.contains(key)) return "";
  return parsed[key].is_string() ? parsed[key].get<std::string>() : parsed[key].dump();
}

}  // namespace huajin::test
