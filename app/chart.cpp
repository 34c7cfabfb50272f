#include "app/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace huajin {
namespace {

constexpr double kWidth = 560, kHeight = 300, kLeft = 64, kRight = 14, kTop = 12, kBottom = 46;
constexpr int kColours = 8;

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

class Scale {
 public:
  Scale(Extent range, bool log, double from, double to) : log_(log), from_(from), to_(to) {
    low_ = log ? std::log(range.low) : range.low, high_ = log ? std::log(range.high) : range.high;
    const double pad = high_ > low_ ? 0.04 * (high_ - low_) : std::max(0.05 * std::abs(high_), 1e-9);
    low_ -= pad, high_ += pad;
  }
  double operator()(double value) const { return from_ + ((log_ ? std::log(value) : value) - low_) / (high_ - low_) * (to_ - from_); }
  double low() const { return log_ ? std::exp(low_) : low_; }
  double high() const { return log_ ? std::exp(high_) : high_; }

 private:
  bool log_;
  double from_, to_, low_ = 0, high_ = 0;
};

bool drawable(const Chart& chart, double y) { return std::isfinite(y) && (!chart.log_y || y > 0); }

void take_ranges(const Chart& chart, Extent& x, Extent& y) {
  for (auto& series : chart.series) {
    for (auto* points : {&series.line, &series.marks})
      for (auto& p : *points)
        if (drawable(chart, p.y)) x.take(p.x), y.take(p.y);
    for (auto& b : series.band)
      if (drawable(chart, b.low)) y.take(b.low), y.take(b.high);
  }
}

std::string axes(const Chart& chart, const Scale& x, const Scale& y) {
  std::string svg;
  for (const double value : chart.log_y ? log_ticks(y.low(), y.high(), 5) : ticks(y.low(), y.high(), 5))
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"ink\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>", kLeft,
                       kWidth - kRight, y(value), y(value), kLeft - 6, y(value) + 5, short_number(value));
  for (const double value : ticks(x.low(), x.high(), 6))
    svg += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/><text class=\"ink\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>", x(value),
                       x(value), kHeight - kBottom, kHeight - kBottom + 4, x(value), kHeight - kBottom + 19, short_number(value));
  svg += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", kLeft, kWidth - kRight, kHeight - kBottom, kHeight - kBottom);
  svg += fmt::format("<text class=\"ink\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>", (kLeft + kWidth - kRight) / 2, kHeight - 6, escaped(chart.x_label));
  return svg;
}

std::string drawn(const Chart& chart, const ChartSeries& series, int colour, const Scale& x, const Scale& y) {
  std::string svg, upper, lower;
  for (auto& b : series.band)
    if (drawable(chart, b.low) && drawable(chart, b.high)) {
      upper += fmt::format("{:.1f},{:.1f} ", x(b.x), y(b.high));
      lower.insert(0, fmt::format("{:.1f},{:.1f} ", x(b.x), y(b.low)));
    }
  if (!upper.empty()) svg += fmt::format("<polygon class=\"s{} band\" points=\"{}{}\"/>", colour, upper, lower);
  std::string points;
  for (auto& p : series.line)
    if (drawable(chart, p.y)) points += fmt::format("{:.1f},{:.1f} ", x(p.x), y(p.y));
  if (!points.empty()) svg += fmt::format("<polyline class=\"s{} line\" points=\"{}\"/>", colour, points);
  for (auto& p : series.marks)
    if (drawable(chart, p.y))
      svg += fmt::format("<circle class=\"s{} mark\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}: {} at {}</title></circle>", colour, x(p.x), y(p.y), escaped(series.label),
                         short_number(p.y), short_number(p.x));
  return svg;
}

double percentile(std::vector<double>& sorted, double q) { return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)]; }

}  // namespace

ChartSeries binned(std::string label, const std::vector<ChartPoint>& points, int bins) {
  ChartSeries series{std::move(label), {}, {}, {}};
  Extent range;
  for (auto& p : points)
    if (std::isfinite(p.y)) range.take(p.x);
  if (range.empty()) return series;
  struct Bin {
    double x = 0;
    std::vector<double> values;
  };
  std::vector<Bin> all(static_cast<size_t>(bins));
  const double width = std::max((range.high - range.low) / bins, 1e-300);
  for (auto& p : points) {
    if (!std::isfinite(p.y) || !std::isfinite(p.x)) continue;
    Bin& bin = all[static_cast<size_t>(std::min<double>(bins - 1, (p.x - range.low) / width))];
    bin.x += p.x, bin.values.push_back(p.y);
  }
  for (auto& bin : all) {
    if (bin.values.empty()) continue;
    double sum = 0;
    for (const double v : bin.values) sum += v;
    const auto count = static_cast<double>(bin.values.size());
    std::sort(bin.values.begin(), bin.values.end());
    series.line.push_back({bin.x / count, sum / count});
    series.band.push_back({bin.x / count, percentile(bin.values, 0.1), percentile(bin.values, 0.9)});
  }
  return series;
}

std::vector<double> ticks(double low, double high, int count) {
  std::vector<double> values;
  if (!(high > low) || count < 1) return values;
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.99) {
      step = factor * power;
      break;
    }
  for (int64_t i = static_cast<int64_t>(std::ceil(low / step)); static_cast<double>(i) * step <= high * (1 + 1e-12) + step * 1e-9; ++i) values.push_back(static_cast<double>(i) * step);
  return values;
}

std::vector<double> log_ticks(double low, double high, int count) {
  if (!(low > 0) || high < 10 * low) return ticks(low, high, count);
  std::vector<double> values;
  const bool decades_only = std::log10(high / low) > count;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= low && factor * power <= high && (factor == 1.0 || !decades_only)) values.push_back(factor * power);
  return values;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return "-";
  if (size >= 1e12 || (size > 0 && size < 1e-4)) return fmt::format("{:.3g}", value);
  for (auto [unit, name] : {std::pair{1e9, " G"}, {1e6, " M"}, {1e4, " k"}})
    if (size >= unit) return fmt::format("{:.4g}{}", value / (unit == 1e4 ? 1e3 : unit), name);
  return fmt::format("{:.4g}", size < 1e-12 ? 0.0 : value);
}

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : text) {
    if (c == '&') html += "&amp;";
    else if (c == '<') html += "&lt;";
    else if (c == '>') html += "&gt;";
    else if (c == '"') html += "&quot;";
    else if (c == '\'') html += "&#39;";
    else html += c;
  }
  return html;
}

std::string svg_of(const Chart& chart) {
  Extent x_range, y_range;
  take_ranges(chart, x_range, y_range);
  if (x_range.empty() || y_range.empty()) return "";
  const Scale x(x_range, false, kLeft, kWidth - kRight), y(y_range, chart.log_y, kHeight - kBottom, kTop);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kWidth, kHeight, escaped(chart.title));
  svg += axes(chart, x, y);
  int colour = 0;
  for (auto& series : chart.series) svg += drawn(chart, series, colour++ % kColours, x, y);
  return svg + "</svg>";
}

}  // namespace huajin
