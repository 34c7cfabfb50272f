// Runs the huajin program as a person would.
#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace huajin::test {

struct Ran {
  int code = -1;  // exit status; -signal if a signal ended it
  std::string out, err;
  double seconds = 0;
  double peak_rss_mb = 0;
};
struct HowToRun {
  std::map<std::string, std::string> environment;
  double timeout_seconds = 120;          // then it is killed and the code is -SIGKILL
  uint64_t memory_bytes = 0;             // limit of the address space; 0: none
  std::vector<std::string> launcher;     // a program that starts it, with its arguments: mpirun -n 4
  std::function<void(pid_t)> meanwhile;  // called once the process runs, from another thread
};
Ran run_huajin(const std::vector<std::string>& arguments, const HowToRun& how = {});

// A folder below the system's temporary one, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& content) const;  // its path
 private:
  std::string path_;
};

std::string words(size_t bytes, unsigned seed = 1);  // text that has something to learn
std::string read_text(const std::string& path);
std::vector<std::string> names_in(const std::string& folder);             // sorted; hidden ones too
std::string json_value(const std::string& json, const std::string& key);  // "key": VALUE of flat JSON, as text; "" if absent

}  // namespace huajin::test
