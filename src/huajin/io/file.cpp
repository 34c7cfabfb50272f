#include "huajin/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace huajin {
namespace fs = std::filesystem;
namespace {

std::atomic<const DiskHook*> disk_hook{nullptr};

std::string reason_of(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_to_write(const char* call, const std::string& path, int error) {
  const char* fix = error == ENOSPC || error == EDQUOT                    ? "free some space or choose another folder (--runs-dir)"
                    : error == EACCES || error == EPERM || error == EROFS ? "choose a folder that you may write to (--runs-dir)"
                                                                          : "check the disk, or choose another folder (--runs-dir)";
  throw WriteError(fmt::format("{}: {} failed: {}; {}", path, call, reason_of(error), fix), error);
}

// Returns an errno that the test wants, or 0.
int ask_hook(const char* call, const std::string& path, size_t bytes, size_t& allowed) {
  const DiskHook* hook = disk_hook.load(std::memory_order_relaxed);
  allowed = bytes;
  return hook ? (*hook)({call, path, bytes}, allowed) : 0;
}
void ask_hook(const char* call, const std::string& path) {
  size_t allowed = 0;
  if (int error = ask_hook(call, path, 0, allowed)) fail_to_write(call, path, error);
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Size of an open regular file. Folders and devices have none that can be trusted.
uint64_t regular_size(int fd, const std::string& path) {
  struct stat s {};
  if (fd < 0 || ::fstat(fd, &s) != 0)
    throw UserError(fmt::format("{}: can't be read: {}; check the path and its permissions", path, reason_of(errno)));
  if (S_ISDIR(s.st_mode)) throw UserError(fmt::format("{}: is a folder, not a file; name a file in it", path));
  if (!S_ISREG(s.st_mode)) throw UserError(fmt::format("{}: is not a regular file; copy it to one", path));
  return static_cast<uint64_t>(s.st_size);
}

}  // namespace

std::string read_file(const std::string& path, uint64_t most) {
  Descriptor file(path, O_RDONLY);
  const uint64_t size = regular_size(file.get(), path);
  if (size > most) throw UserError(fmt::format("{}: has {} bytes, at most {} are allowed here; is it the right file?", path, size, most));
  std::string content(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.get(), content.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw UserError(fmt::format("{}: reading failed at byte {}: {}; check the disk", path, done, reason_of(errno)));
    if (n == 0)
      throw UserError(fmt::format("{}: became shorter while it was read ({} of {} bytes); try again when nothing writes to it", path, done, size));
    done += static_cast<size_t>(n);
  }
  return content;
}

FileView::FileView(const std::string& path) : path_(path) {
  Descriptor file(path, O_RDONLY);
  size_ = regular_size(file.get(), path);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) throw UserError(fmt::format("{}: can't be mapped ({} bytes): {}; free some memory", path, size_, reason_of(errno)));
  data_ = static_cast<const std::byte*>(mapped);
}
FileView::~FileView() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}
FileView::FileView(FileView&& other) noexcept : path_(std::move(other.path_)), data_(other.data_), size_(other.size_) {
  other.data_ = nullptr;
  other.size_ = 0;
}
void FileView::will_read_all() const {
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_WILLNEED);
}
void FileView::forget() const {
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

std::string confined(const std::string& folder, std::string_view name, const std::string& where) {
  const auto refuse = [&](const char* why) -> DamagedError {
    return DamagedError(fmt::format("{}: file name '{}' {}; only names inside {} are allowed: get the file from its source again", where,
                                    name.substr(0, 200), why, folder));
  };
  if (name.empty()) throw refuse("is empty");
  if (name.find('\0') != name.npos) throw refuse("has a zero byte");
  const fs::path relative(name);
  if (relative.is_absolute()) throw refuse("is absolute");
  for (const fs::path& part : relative)
    if (part == "..") throw refuse("has '..'");
  std::error_code error;
  const fs::path root = fs::weakly_canonical(folder, error);
  const fs::path target = error ? fs::path() : fs::weakly_canonical(root / relative, error);
  if (error) throw refuse("can't be resolved");
  const auto [rest, unused] = std::mismatch(root.begin(), root.end(), target.begin(), target.end());
  if (rest != root.end()) throw refuse("leads out of the folder through a link (copy the folder with cp -rL)");
  return (fs::path(folder) / relative).string();
}

bool exists(const std::string& path) {
  struct stat s {};
  return ::lstat(path.c_str(), &s) == 0;
}
bool is_folder(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}
uint64_t file_size(const std::string& path) {
  Descriptor file(path, O_RDONLY | O_NONBLOCK);
  return regular_size(file.get(), path);
}

uint64_t free_disk_bytes(const std::string& folder) {
  fs::path at = fs::absolute(folder);
  struct statvfs s {};
  while (::statvfs(at.c_str(), &s) != 0) {
    if (errno != ENOENT || at == at.parent_path())
      throw UserError(fmt::format("{}: free space is unknown: {}; check the path", folder, reason_of(errno)));
    at = at.parent_path();
  }
  return static_cast<uint64_t>(s.f_bavail) * s.f_frsize;
}
void require_free_disk(const std::string& folder, uint64_t bytes, std::string_view what) {
  const uint64_t free = free_disk_bytes(folder);
  if (free < bytes)
    throw WriteError(fmt::format("{}: {} needs {:.1f} MB, {:.1f} MB are free; free some space or choose another folder (--runs-dir)", folder, what,
                                 static_cast<double>(bytes) / 1e6, static_cast<double>(free) / 1e6),
                     ENOSPC);
}

FileWriter::FileWriter(const std::string& path) : path_(path), fd_(-1) {
  ask_hook("open", path_);
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_to_write("open", path_, errno);
}
FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}
void FileWriter::write(Bytes bytes) {
  while (!bytes.empty()) {
    size_t allowed = 0;
    if (int error = ask_hook("write", path_, bytes.size(), allowed)) fail_to_write("write", path_, error);
    const ssize_t n = ::write(fd_, bytes.data(), allowed);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_to_write("write", path_, n < 0 ? errno : ENOSPC);
    written_ += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}
void FileWriter::finish() {
  ask_hook("fsync", path_);
  if (::fsync(fd_) != 0) fail_to_write("fsync", path_, errno);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail_to_write("close", path_, errno);
}

void make_folder(const std::string& path) {
  if (is_folder(path)) return;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty() && parent != fs::path(path)) make_folder(parent.string());
  ask_hook("mkdir", path);
  if (::mkdir(path.c_str(), 0755) != 0 && !(errno == EEXIST && is_folder(path))) fail_to_write("mkdir", path, errno);
}
void sync_folder(const std::string& path) {
  ask_hook("fsync folder", path);
  Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (folder.get() < 0) fail_to_write("open", path, errno);
  // Some network file systems can't sync a folder and say EINVAL; they order names themselves.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) fail_to_write("fsync", path, errno);
}
void rename_path(const std::string& from, const std::string& to) {
  ask_hook("rename", from);
  if (::rename(from.c_str(), to.c_str()) != 0) fail_to_write("rename", to, errno);
}
bool exchange_paths(const std::string& a, const std::string& b) {
  ask_hook("exchange", a);
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return false;
  fail_to_write("rename", b, errno);
}
void remove_tree(const std::string& path) {
  if (!exists(path)) return;
  ask_hook("remove", path);
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_to_write("remove", path, error.value());
}

void write_atomically(const std::string& path, std::string_view content) {
  const fs::path parent = fs::path(path).parent_path();
  const std::string temporary = (parent / fmt::format(".{}.{}.tmp", fs::path(path).filename().string(), ::getpid())).string();
  remove_tree(temporary);  // of an earlier process with our number
  try {
    FileWriter file(temporary);
    file.write(as_bytes(content));
    file.finish();
    rename_path(temporary, path);
  } catch (const WriteError&) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(parent.empty() ? "." : parent.string());
}

ScopedDiskHook::ScopedDiskHook(DiskHook hook) : hook_(std::move(hook)), before_(disk_hook.exchange(&hook_)) {}
ScopedDiskHook::~ScopedDiskHook() { disk_hook.store(before_); }

}  // namespace huajin
