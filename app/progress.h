// What a person sees while training: one line that renews itself on a terminal, plain lines elsewhere. All on stderr.
#pragma once
#include <string>

#include "huajin/core/technique.h"

namespace huajin {

enum class Show { kBar, kLines, kNothing };
// kBar on a terminal that can (TERM is not dumb), unless quiet.
Show how_to_show(bool quiet);

class ProgressView : public Observer {
 public:
  // `units`: "tokens" or "images". Colour only on a terminal and without NO_COLOR.
  ProgressView(Show show, std::string units);
  ~ProgressView() override;
  void on_step(const Progress& progress, double seconds) override;
  void on_readings(int64_t step, std::span<const Reading> readings) override;
  void on_evaluation(const Progress& progress, double loss, double bits_per_byte, double accuracy) override;
  void on_note(const std::string& text) override;
  void close();  // leaves the last line standing

 private:
  void draw(double now);
  void line(const std::string& text);
  std::string state(double now) const;

  Show show_;
  bool colour_ = false;
  std::string units_;
  Progress progress_;
  double started_, drawn_ = 0, loss_ = 0, rate_ = 0, fraction_rate_ = 0;
  double window_time_, window_fraction_ = 0;
  int64_t window_units_ = 0, first_units_ = -1;
  size_t width_ = 0;  // of the line that stands there
};

// 9 -> "9 s", 75 -> "1 min 15 s", 7300 -> "2 h 2 min".
std::string duration_text(double seconds);
// 1234567 -> "1.23 M".
std::string count_text(double value);

}  // namespace huajin
