// Files as a trainer needs them: reads that name the path in every error, writes that are checked, synced and atomic.
// Every call that changes the disk passes one hook, so that tests can stop after each of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "huajin/core/errors.h"

namespace huajin {

using Bytes = std::span<const std::byte>;
inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The disk is full, read-only or gone. Training may go on: whatever stood at the path before stands there still.
class WriteError : public UserError {
 public:
  WriteError(const std::string& message, int error_number) : UserError(message), error_number_(error_number) {}
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

// ---- reading: UserError names the path and the system's reason ---------------------------------------------------------
// The whole file. UserError if it has more than `most` bytes.
std::string read_file(const std::string& path, uint64_t most = uint64_t{1} << 30);

// The file's bytes by mmap, read-only. Pages come when touched; the file must not shrink meanwhile (the kernel would send SIGBUS).
class FileView {
 public:
  explicit FileView(const std::string& path);
  ~FileView();
  FileView(FileView&& other) noexcept;
  FileView& operator=(FileView&&) = delete;
  Bytes bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  void will_read_all() const;  // asks the kernel to read ahead
  void forget() const;         // pages read so far no longer count as this process's memory; they are read again when looked at

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// `name`, taken from a file that somebody else wrote, as a path inside `folder`. DamagedError (naming `where`) if it is empty, absolute, has a ".."
// or a NUL, or if a symbolic link leads out of the folder. Links that stay inside are fine. The file itself need not exist.
std::string confined(const std::string& folder, std::string_view name, const std::string& where);

bool exists(const std::string& path);
bool is_folder(const std::string& path);
uint64_t file_size(const std::string& path);
uint64_t free_disk_bytes(const std::string& folder);  // that this user may still write; asks the nearest parent that exists
// WriteError "what needs x, y are free" unless that many bytes are free.
void require_free_disk(const std::string& folder, uint64_t bytes, std::string_view what);

// ---- writing: WriteError names the path and the system's reason -------------------------------------------------------
// A new file, which must not exist yet. Bytes are on the disk once finish() returned; without finish() the file is left as it is.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  void write(Bytes bytes);  // checked; short writes are continued
  void finish();            // fsync and close
  uint64_t written() const { return written_; }

 private:
  std::string path_;
  int fd_;
  uint64_t written_ = 0;
};
void make_folder(const std::string& path);  // with parents; fine if it exists
void sync_folder(const std::string& path);  // fsync of the folder: its names are on the disk
void rename_path(const std::string& from, const std::string& to);
// Swaps two paths atomically; false where the file system can't.
bool exchange_paths(const std::string& a, const std::string& b);
void remove_tree(const std::string& path);  // file or folder; fine if absent
// Old content or new content, never a mix, whatever happens: temporary name beside it, fsync, rename, fsync of the parent.
void write_atomically(const std::string& path, std::string_view content);

// ---- for tests -----------------------------------------------------------------------------------------------------------
struct DiskCall {
  const char* name;  // open, write, fsync, rename, exchange, mkdir, remove, fsync folder
  const std::string& path;
  size_t bytes;  // of a write
};
// Called before every call that changes the disk. Returns 0 to let it happen, or an errno to make it fail without effect; a write that is let
// through with `allowed` lowered is cut to that many bytes.
using DiskHook = std::function<int(const DiskCall&, size_t& allowed)>;
class ScopedDiskHook {
 public:
  explicit ScopedDiskHook(DiskHook hook);
  ~ScopedDiskHook();

 private:
  DiskHook hook_;
  const DiskHook* before_;
};

}  // namespace huajin
