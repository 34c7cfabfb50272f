#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/io/run_folder.h"

namespace huajin {
namespace {

constexpr size_t kMostWaitingLines = 10'000;

// -1 where the line has none.
int64_t step_of_line(std::string_view line) {
  try {
    const Json json = parse_json(line, "log", {.bytes = 1 << 20, .depth = 8, .values = 100'000});
    return json.is_object() && json.contains("step") ? integer_member(json, "step", "log") : -1;
  } catch (const DamagedError&) {
    return -1;
  }
}

}  // namespace

LogFile::LogFile(const std::string& path, double sync_every_seconds)
    : path_(path),
      fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
      sync_every_(std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(sync_every_seconds))),
      synced_(std::chrono::steady_clock::now()) {
  if (fd_ < 0)
    throw UserError(
        fmt::format("{}: can't be written: {}; choose a folder that you may write to (--runs-dir)", path, std::generic_category().message(errno)));
  off_t end = ::lseek(fd_, 0, SEEK_END);
  char last = '\n';
  while (end > 0 && ::pread(fd_, &last, 1, end - 1) == 1 && last != '\n') --end;
  if (end >= 0 && ::ftruncate(fd_, end) != 0)
    throw UserError(fmt::format("{}: can't be cut to its last whole line: {}; check the disk", path, std::generic_category().message(errno)));
}
LogFile::~LogFile() {
  sync();
  ::close(fd_);
}

// All of the line or nothing of it.
bool LogFile::write_line(const std::string& line) {
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return static_cast<void>(::ftruncate(fd_, before) == 0), false;
    done += static_cast<size_t>(n);
  }
  return true;
}

void LogFile::append(std::string_view line) {
  std::string text(line);
  std::replace(text.begin(), text.end(), '\n', ' ');
  waiting_.push_back(text + "\n");
  size_t written = 0;
  while (written < waiting_.size() && write_line(waiting_[written])) ++written;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(written));
  if (waiting_.size() > kMostWaitingLines) waiting_.erase(waiting_.begin());
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < sync_every_) return;
  ::fdatasync(fd_);
  synced_ = now;
}

void LogFile::sync() {
  while (!waiting_.empty() && write_line(waiting_.front())) waiting_.erase(waiting_.begin());
  ::fdatasync(fd_);
  synced_ = std::chrono::steady_clock::now();
}

void LogFile::forget_after(int64_t step) {
  const std::string all = read_file(path_, uint64_t{8} << 30);
  std::string kept;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size() - 1) + 1;
    if (step_of_line(std::string_view(all).substr(at, end - at)) <= step) kept.append(all, at, end - at);
    at = end;
  }
  if (kept == all) return;
  write_atomically(path_, kept);
  const int fd = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd < 0) throw UserError(fmt::format("{}: can't be opened again: {}; check the disk", path_, std::generic_category().message(errno)));
  ::close(fd_);
  fd_ = fd;
}

}  // namespace huajin
