// A line chart as inline SVG: no script, nothing fetched. Colours are CSS classes of the page that holds it (s0 to s7, grid, ink), so that it follows light and dark.
#pragma once
#include <string>
#include <vector>

namespace huajin {

struct ChartPoint {
  double x = 0, y = 0;
};
struct ChartBand {
  double x = 0, low = 0, high = 0;
};
struct ChartSeries {
  std::string label;
  std::vector<ChartPoint> line;
  std::vector<ChartBand> band;    // drawn behind the line
  std::vector<ChartPoint> marks;  // circles; their values are shown when pointed at
};
struct Chart {
  std::string title, x_label, y_label;
  bool log_y = false;  // values that are not positive are left out
  std::vector<ChartSeries> series;
};

// At most `bins` points: the mean of y in equal ranges of x, and as band what lies between its tenth and ninetieth percentile. Points that are not finite are left out.
ChartSeries binned(std::string label, const std::vector<ChartPoint>& points, int bins);

// About `count` round numbers (1, 2, 5 times a power of ten) within [low, high].
std::vector<double> ticks(double low, double high, int count);
// The same for a logarithmic axis; of a range below a factor of ten, those of a linear one.
std::vector<double> log_ticks(double low, double high, int count);

std::string short_number(double value);  // 1.2 k, 0.003, 45 M: at most four digits
std::string escaped(const std::string& text);  // for HTML

// <svg> that is as wide as its place; "" if there is nothing to draw.
std::string svg_of(const Chart& chart);

}  // namespace huajin
