#include "app/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace huajin {
namespace {

double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

constexpr double kRedraw = 0.1, kWindow = 2;  // seconds

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string count_text(double value) {
  if (value < 1000) return fmt::format("{:.0f}", value);
  const char* prefix = "kMGTP";
  while (value >= 999.5 && prefix[1] != 0) {
    value /= 1000;
    if (value < 999.5) break;
    ++prefix;
  }
  return fmt::format("{:.3g} {}", value, *prefix);
}

Show how_to_show(bool quiet) {
  if (quiet) return Show::kNothing;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::strcmp(terminal, "dumb") == 0;
  return isatty(STDERR_FILENO) && !dumb ? Show::kBar : Show::kLines;
}

ProgressView::ProgressView(Show show, std::string units) : show_(show), units_(std::move(units)), started_(now_seconds()), window_time_(started_) {
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = show == Show::kBar && (no_colour == nullptr || *no_colour == 0);
}
ProgressView::~ProgressView() { close(); }

void ProgressView::on_step(const Progress& progress, double) {
  const double now = now_seconds();
  if (first_units_ < 0) first_units_ = window_units_ = progress_.tokens, window_fraction_ = progress_.fraction, window_time_ = now;
  progress_ = progress;
  if (now - window_time_ >= kWindow || rate_ == 0) {
    const double passed = std::max(now - window_time_, 1e-3);
    const double rate = static_cast<double>(progress.tokens - window_units_) / passed, speed = (progress.fraction - window_fraction_) / passed;
    if (now - window_time_ >= kWindow) {
      rate_ = rate_ == 0 ? rate : 0.5 * (rate_ + rate), fraction_rate_ = fraction_rate_ == 0 ? speed : 0.5 * (fraction_rate_ + speed);
      window_time_ = now, window_units_ = progress.tokens, window_fraction_ = progress.fraction;
    }
  }
}

void ProgressView::on_readings(int64_t, std::span<const Reading> readings) {
  for (auto& reading : readings)
    if (reading.name == "loss" && std::isfinite(reading.value)) loss_ = loss_ == 0 ? reading.value : 0.9 * loss_ + 0.1 * reading.value;
  const double now = now_seconds();
  // plain lines come at a twentieth of the time that has passed, at least 2 s: a two-minute run leaves some 30 of them
  const double pause = show_ == Show::kBar ? kRedraw : std::max(2.0, (now - started_) / 20);
  if (show_ != Show::kNothing && (now - drawn_ >= pause || progress_.fraction >= 1)) draw(now);
}

std::string ProgressView::state(double now) const {
  std::string text = fmt::format("step {}  loss {:.3f}", progress_.step, loss_);
  if (rate_ > 0) text += fmt::format("  {} {}/s", count_text(rate_), units_);
  text += fmt::format("  {:.0f} %", 100 * progress_.fraction);
  if (fraction_rate_ > 0) text += "  " + duration_text(std::max(0.0, (1 - progress_.fraction) / fraction_rate_ - (now - window_time_))) + " left";
  return text;
}

void ProgressView::draw(double now) {
  drawn_ = now;
  std::string text = state(now);
  if (show_ == Show::kLines) return line(text);
  const size_t room = terminal_width();
  if (text.size() + 16 < room) {
    const size_t cells = std::min<size_t>(room - text.size() - 6, 30);
    const auto full = static_cast<size_t>(std::lround(progress_.fraction * static_cast<double>(cells)));
    const std::string done(full, '#'), rest(cells - full, '.');
    text = "[" + (colour_ ? "\x1b[32m" + done + "\x1b[0m" : done) + rest + "] " + text;
  }
  const size_t shown = text.size() - (colour_ && text.find('\x1b') != std::string::npos ? 9 : 0);
  std::fprintf(stderr, "\r%s%s", text.c_str(), std::string(width_ > shown ? width_ - shown : 0, ' ').c_str());
  std::fflush(stderr);
  width_ = shown;
}

void ProgressView::line(const std::string& text) {
  if (show_ == Show::kNothing) return;
  if (width_ > 0) std::fprintf(stderr, "\r%s\r", std::string(width_, ' ').c_str());
  width_ = 0;
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
}

void ProgressView::on_evaluation(const Progress& progress, double loss, double bits_per_byte, double accuracy) {
  std::string text = fmt::format("step {}  validation loss {:.4f}", progress.step, loss);
  if (std::isfinite(bits_per_byte))
    text += fmt::format("  {:.3f} bits per byte", bits_per_byte);
  else if (std::isfinite(accuracy))
    text += fmt::format("  accuracy {:.2f} %", 100 * accuracy);
  line(text);
}

void ProgressView::on_note(const std::string& text) {
  if (show_ == Show::kNothing)
    std::fprintf(stderr, "huajin: note: %s\n", text.c_str());
  else
    line("note: " + text);
}

void ProgressView::close() {
  if (width_ > 0) std::fputc('\n', stderr);
  width_ = 0;
}

}  // namespace huajin
