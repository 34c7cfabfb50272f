#include "huajin/io/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "huajin/core/errors.h"

namespace huajin {
namespace fs = std::filesystem;
namespace {

bool holds_a_run(const std::string& path) { return exists(path + "/recipe.toml") || exists(path + "/log.jsonl") || exists(path + "/checkpoints"); }

std::string name_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

// The lock is the kernel's, on an open file, so a killed process leaves none behind. Its content only tells whom to look for.
int take_lock(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0)
    throw UserError(fmt::format("{}: the run folder can't be written: {}; choose a folder that you may write to (--runs-dir)", folder,
                                std::generic_category().message(errno)));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    char holder[100] = {};
    const ssize_t n = ::pread(fd, holder, sizeof holder - 1, 0);
    ::close(fd);
    if (error != EWOULDBLOCK)
      throw UserError(fmt::format("{}: can't be locked: {}; choose another folder (--runs-dir)", path, std::generic_category().message(error)));
    throw UserError(fmt::format("{}: another process ({}) works in this run folder; wait until it ends, or choose another name (--run NAME)", folder,
                                n > 0 ? holder : "of unknown number"));
  }
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string holder = fmt::format("process {} on {}", ::getpid(), host);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, holder.data(), holder.size(), 0) < 0) {
    // a full disk: the lock holds without its text
  }
  return fd;
}

}  // namespace

RunFolder::RunFolder(std::string path) : path_(std::move(path)), lock_(take_lock(path_)) {}
RunFolder::RunFolder(RunFolder&& other) noexcept : path_(std::move(other.path_)), lock_(other.lock_) { other.lock_ = -1; }
RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}
std::string RunFolder::name() const { return fs::path(path_).filename().string(); }

RunFolder RunFolder::create(const std::string& runs, const std::string& name) {
  if (name.find('/') != name.npos || name.find('\0') != name.npos || name.starts_with('.') || name.size() > 200)
    throw UserError(
        fmt::format("--run '{}': is no plain name; use letters, digits, - and _ (the folder is given by --runs-dir)", name.substr(0, 200)));
  std::string path = runs + "/" + (name.empty() ? name_of_now() : name);
  if (name.empty())
    for (int i = 2; exists(path); ++i) path = fmt::format("{}/{}-{}", runs, name_of_now(), i);
  make_folder(path);
  RunFolder run(path);
  if (holds_a_run(path))
    throw UserError(fmt::format("{}: a run is there already; go on with it (huajin resume {}) or choose another name (--run NAME)", path, path));
  return run;
}

RunFolder RunFolder::open(const std::string& path) {
  if (!is_folder(path)) throw UserError(fmt::format("{}: no such run folder; name a folder that huajin train made", path));
  if (!holds_a_run(path))
    throw UserError(fmt::format("{}: holds no run (no recipe.toml, no checkpoints); name a folder that huajin train made", path));
  std::string plain = path;
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return RunFolder(plain);
}

std::vector<std::string> list_runs(const std::string& runs) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs, error))
    if (entry.is_directory(error) && holds_a_run(entry.path().string()))
      found.emplace_back(entry.last_write_time(error), entry.path().filename().string());
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (auto& [time, name] : found) names.push_back(std::move(name));
  return names;
}

std::string find_run(const std::string& runs, const std::string& name) {
  for (const std::string& path : {name, runs + "/" + name}) {
    if (name.empty() || !is_folder(path)) continue;
    if (holds_a_run(path)) return path;
    const fs::path above = fs::path(path).lexically_normal().parent_path().parent_path();  // RUN/checkpoints/step-N
    if (exists(path + "/manifest.json") && holds_a_run(above.string())) return above.string();
    if (exists(path + "/model.safetensors") || exists(path + "/model.safetensors.index.json"))
      throw UserError(fmt::format("{}: holds only weights, no state of an optimizer to resume; start a new run from it (huajin train --init-from {})",
                                  path, path));
  }
  std::string known;
  for (const std::string& run : list_runs(runs)) {
    if (known.size() > 200) break;
    known += (known.empty() ? "" : ", ") + run;
  }
  throw UserError(
      fmt::format("'{}': no such run in {}; {}", name, runs, known.empty() ? "there are none: start one with huajin train" : "there are: " + known));
}

}  // namespace huajin
