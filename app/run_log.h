// log.jsonl of a run: one line a step, an evaluation or a note. Every number in it is finite or null.
#pragma once
#include <string>

#include "huajin/core/technique.h"
#include "huajin/io/run_folder.h"

namespace huajin {

class RunLog : public Observer {
 public:
  explicit RunLog(const std::string& path) : file_(path) {}
  void forget_after(int64_t step) { file_.forget_after(step); }  // before a resumed run lives it again
  void sync() { file_.sync(); }
  void on_step(const Progress& progress, double seconds) override;
  void on_readings(int64_t step, std::span<const Reading> readings) override;
  void on_evaluation(const Progress& progress, double loss, double bits_per_byte, double accuracy) override;
  void on_note(const std::string& text) override;

 private:
  LogFile file_;
  Progress progress_;
  double seconds_ = 0;
};

}  // namespace huajin
