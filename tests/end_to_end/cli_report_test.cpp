// huajin report: one page that fetches nothing, whose numbers are those of the log; and the charts it is made of.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "app/chart.h"
#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

TEST(Chart, TicksAreRoundAndInside) {
  EXPECT_EQ(ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks(0.13, 0.46, 3), (std::vector<double>{0.2, 0.4}));
  EXPECT_EQ(log_ticks(0.9, 130, 5).front(), 1);
  EXPECT_EQ(log_ticks(0.9, 130, 5).back(), 100);
  EXPECT_TRUE(ticks(3, 3, 5).empty());
  for (const double low : {-7.3, 0.0, 1e-6, 41.0, 9e5})
    for (const double span : {1e-4, 0.3, 12.0, 5e6}) {
      const auto values = ticks(low, low + span, 5);
      EXPECT_GE(values.size(), 2U) << low << " " << span;
      EXPECT_LE(values.size(), 12U) << low << " " << span;
      for (const double v : values) EXPECT_TRUE(v >= low - 1e-6 * span && v <= low + span * (1 + 1e-6) + 1e-6) << v << " of " << low << " + " << span;
    }
}

TEST(Chart, BinsHoldMeansAndPercentiles) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), static_cast<double>(i % 10)});
  points.push_back({500, std::numeric_limits<double>::quiet_NaN()});
  const ChartSeries series = binned("a", points, 10);
  ASSERT_EQ(series.line.size(), 10U);
  for (auto& p : series.line) EXPECT_NEAR(p.y, 4.5, 0.05);
  for (auto& b : series.band) {
    EXPECT_NEAR(b.low, 1, 1);
    EXPECT_NEAR(b.high, 8, 1);
  }
  EXPECT_TRUE(binned("empty", {}, 10).line.empty());
  EXPECT_EQ(svg_of({"t", "x", "y", false, {binned("empty", {}, 10)}}), "");
}

TEST(Chart, NumbersAreShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(1234567), "1.235 M");
  EXPECT_EQ(short_number(12345), "12.35 k");
  EXPECT_EQ(short_number(0.00321), "0.00321");
  EXPECT_EQ(escaped("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
}

class CliReport : public testing::Test {
 protected:
  void SetUp() override {
    const std::string text = folder_.write("text.txt", words(30000));
    for (auto& [run, rate] : {std::pair{"a", "0.01"}, std::pair{"b<i>", "0.02"}}) {
      const Ran ran = run_huajin({"train", "--data", text, "--runs-dir", runs_, "--run", run, "--budget", "40step", "--set", "model.layers=1", "--set", "model.width=32", "--set",
                                  "model.heads=2", "--set", "batch.rows=4", "--set", "batch.length=32", "--set", std::string("optimizer.learning_rate=") + rate, "--quiet"});
      ASSERT_EQ(ran.code, 0) << ran.err;
    }
  }
  TemporaryFolder folder_;
  std::string runs_ = folder_.path() + "/runs";
};

TEST_F(CliReport, IsOneFileWithTheNumbersOfTheLog) {
  const std::string page = folder_.path() + "/page.html";
  const Ran ran = run_huajin({"report", "a", "b<i>", "--runs-dir", runs_, "--out", page});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string html = read_text(page);
  EXPECT_LT(html.size(), 2000000U);
  for (auto* foreign : {"http:", "https:", "<script", "src=", "@import", "url(", "b<i>", "nan", "inf,"}) EXPECT_EQ(html.find(foreign), std::string::npos) << foreign;
  for (auto* wanted : {"b&lt;i&gt;", "<svg", "Loss", "bits per byte", "Learning rate", "Gradient norm", "Throughput", "optimizer.learning_rate"})
    EXPECT_NE(html.find(wanted), std::string::npos) << wanted;
  // The last evaluation in the log stands in the table and as a mark of the chart.
  std::istringstream log(read_text(runs_ + "/a/log.jsonl"));
  std::string bits;
  for (std::string line; std::getline(log, line);)
    if (!json_value(line, "val_bits_per_byte").empty()) bits = json_value(line, "val_bits_per_byte");
  ASSERT_FALSE(bits.empty());
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", std::stod(bits));
  EXPECT_NE(html.find(text), std::string::npos) << text;
  EXPECT_NE(html.find("<title>a: "), std::string::npos);  // and its loss as a mark of the chart
}

TEST_F(CliReport, OfARunThatHasNotEndedShowsWhatThereIs) {
  std::filesystem::remove(runs_ + "/a/result.json");
  std::ofstream(runs_ + "/a/log.jsonl", std::ios::app) << "{\"step\": 41, \"lo";  // killed in mid-line
  const Ran ran = run_huajin({"report", "a", "--runs-dir", runs_});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(read_text(runs_ + "/a/report.html").find("has not ended"), std::string::npos);
}

TEST_F(CliReport, RefusesWhatItCannotShow) {
  std::ofstream(runs_ + "/a/log.jsonl", std::ios::trunc).close();
  const std::vector<std::vector<std::string>> bad{{"report", "a"}, {"report", "none"}, {"report"}, {"report", "b<i>", "--out", "/proc/none/page.html"},
                                                  {"report", "1", "2", "3", "4", "5", "6", "7", "8", "9"}};
  for (auto arguments : bad) {
    arguments.insert(arguments.end(), {"--runs-dir", runs_});
    const Ran ran = run_huajin(arguments);
    EXPECT_EQ(ran.code, 2) << arguments[1] << ran.out << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

}  // namespace
}  // namespace huajin::test
