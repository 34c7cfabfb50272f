// runs/NAME/: what one run leaves. One process at a time holds it.
//
//   recipe.toml  log.jsonl  result.json  checkpoints/step-N/  lock
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "huajin/io/file.h"

namespace huajin {

// Lines of JSON, appended whole. A full disk never throws: lines wait in memory (the newest 10,000) until there is room again.
class LogFile {
 public:
  // Cuts off a last line that a killed process left half written. Throws UserError if the file can't be opened.
  explicit LogFile(const std::string& path, double sync_every_seconds = 5);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  void append(std::string_view line);  // one JSON object without a newline in it
  void sync();                         // everything appended is on the disk, if the disk takes it
  // Drops the lines whose "step" is greater: they tell of a future that a resumed run lives again.
  void forget_after(int64_t step);
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }

 private:
  bool write_line(const std::string& line);

  std::string path_;
  int fd_;
  std::chrono::steady_clock::duration sync_every_;
  std::chrono::steady_clock::time_point synced_;
  std::vector<std::string> waiting_;
};

class RunFolder {
 public:
  // A new one, RUNS/NAME. UserError if the name is no plain file name, if a run is there already (fix: resume, or another name), if the folder can't
  // be written, or if another process holds it. NAME "": date and time.
  static RunFolder create(const std::string& runs, const std::string& name);
  // One that exists, to go on with it. UserError if there is none, or another process holds it.
  static RunFolder open(const std::string& path);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();  // gives the lock back

  const std::string& path() const { return path_; }
  std::string name() const;
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string checkpoints() const { return file("checkpoints"); }
  std::string recipe() const { return file("recipe.toml"); }
  std::string log() const { return file("log.jsonl"); }
  void write(std::string_view name, std::string_view content) const { write_atomically(file(name), content); }  // result.json, recipe.toml

 private:
  explicit RunFolder(std::string path);  // takes the lock
  std::string path_;
  int lock_ = -1;
};

// The run that a command names: a path to a run folder or to a checkpoint in it, or a name in `runs`. UserError lists those that there are.
std::string find_run(const std::string& runs, const std::string& name);
std::vector<std::string> list_runs(const std::string& runs);  // names, newest first

}  // namespace huajin
