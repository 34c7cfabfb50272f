#include "app/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace huajin {
namespace {

constexpr int kBins = 240;

constexpr const char* kStyle = R"(
:root{--paper:#fcfcfa;--card:#fff;--ink:#1c1f23;--soft:#5b636e;--rule:#dde1e6;--s0:#2563c9;--s1:#c2510c;--s2:#0f7b4f;--s3:#a3258c;--s4:#7a5c00;--s5:#0b7285;--s6:#b3122f;--s7:#555}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--card:#1c2024;--ink:#e8eaed;--soft:#a4acb6;--rule:#353b42;--s0:#7aa7f7;--s1:#f59e5b;--s2:#5cc998;--s3:#e58fd4;--s4:#d9bd5c;--s5:#62c4d6;--s6:#f58a9b;--s7:#b9bec5}}
*{box-sizing:border-box}body{margin:0;padding:20px;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:28px 0 8px}p{margin:4px 0;color:var(--soft);max-width:70em}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr));gap:14px}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px}
figcaption{font-weight:600;margin-bottom:4px}figcaption span{color:var(--soft);font-weight:400}
svg{width:100%;height:auto;display:block;font:14px system-ui,sans-serif}
@media (max-width:620px){svg{font-size:20px}}
.grid{stroke:var(--rule)}.axis{stroke:var(--soft)}.ink{fill:var(--soft)}.line{fill:none;stroke-width:2;stroke-linejoin:round}.band{opacity:.18;stroke:none}.mark{stroke:var(--card);stroke-width:1.5}
.key{display:flex;flex-wrap:wrap;gap:4px 16px;margin:10px 0}.key b{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.scroll{overflow-x:auto;width:fit-content;max-width:100%;background:var(--card);border:1px solid var(--rule);border-radius:8px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:6px 12px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--card)}tr:last-child td{border-bottom:0}td.best{font-weight:700}
pre{overflow-x:auto;background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px;font-size:13px}li{color:var(--soft)}
)";

std::string colour_rules() {
  std::string css;
  for (int i = 0; i < 8; ++i) css += fmt::format(".line.s{0}{{stroke:var(--s{0})}}.band.s{0},.mark.s{0}{{fill:var(--s{0})}}.key .s{0}{{background:var(--s{0})}}", i);
  return css;
}

double number_of(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number() ? at->get<double>() : std::nan("");
}

std::vector<ChartPoint> column(const ReportedRun& run, const char* x, const char* y) {
  std::vector<ChartPoint> points;
  for (auto& line : run.log) points.push_back({number_of(line, x), number_of(line, y)});
  std::erase_if(points, [](auto& p) { return !std::isfinite(p.x) || !std::isfinite(p.y); });
  return points;
}
std::vector<ChartPoint> throughput(const ReportedRun& run, const char* units) {
  std::vector<ChartPoint> points;
  double before = 0;
  for (auto& line : run.log) {
    const double seconds = number_of(line, "seconds_step"), now = number_of(line, units);
    if (seconds > 0 && now > before) points.push_back({number_of(line, "seconds"), (now - before) / seconds});
    if (std::isfinite(now)) before = now;
  }
  return points;
}
bool any_has(const std::vector<ReportedRun>& runs, const char* key) {
  return std::any_of(runs.begin(), runs.end(), [&](auto& run) { return !column(run, "seconds", key).empty(); });
}

bool evaluated_often(const std::vector<ReportedRun>& runs, const char* key) {  // a single point is in the table
  return std::any_of(runs.begin(), runs.end(), [&](auto& run) { return column(run, "seconds", key).size() > 1; });
}

std::string figure(const Chart& chart, const std::string& note) {
  const std::string svg = svg_of(chart);
  if (svg.empty()) return "";
  return fmt::format("<figure><figcaption>{} <span>{}</span></figcaption>{}</figure>\n", escaped(chart.title), escaped(note), svg);
}

// What was logged every step: mean of each 240th of the run, band from the tenth to the ninetieth percentile; and what was evaluated, as marks.
std::string curve(const std::vector<ReportedRun>& runs, const Chart& form, const char* x, const char* y, const char* marks, const std::string& note) {
  Chart chart = form;
  for (auto& run : runs) {
    chart.series.push_back(binned(run.name, y == nullptr ? std::vector<ChartPoint>{} : column(run, x, y), kBins));
    if (marks == nullptr) continue;
    chart.series.back().marks = column(run, x, marks);
    if (y == nullptr) chart.series.back().line = chart.series.back().marks;
  }
  return figure(chart, note);
}

std::string charts(const std::vector<ReportedRun>& runs) {
  const bool images = !any_has(runs, "val_bits_per_byte") && any_has(runs, "val_accuracy");
  const char* units = images ? "examples" : "tokens";
  const std::string unit_name = images ? "images" : "tokens";
  std::string html = curve(runs, {"Loss", "seconds since the start", "", true, {}}, "seconds", "loss", "val_loss", "nats; circles: validation");
  html += curve(runs, {"Loss", unit_name + " seen", "", true, {}}, units, "loss", "val_loss", "nats; circles: validation");
  if (evaluated_often(runs, "val_bits_per_byte")) html += curve(runs, {"Bits per byte", "seconds since the start", "", false, {}}, "seconds", nullptr, "val_bits_per_byte", "validation");
  if (images && evaluated_often(runs, "val_accuracy")) html += curve(runs, {"Accuracy", "seconds since the start", "", false, {}}, "seconds", nullptr, "val_accuracy", "validation");
  html += curve(runs, {"Learning rate", "seconds since the start", "", false, {}}, "seconds", "learning_rate", nullptr, "");
  html += curve(runs, {"Gradient norm", "seconds since the start", "", true, {}}, "seconds", "norm", nullptr, "before clipping");
  Chart speed{"Throughput", "seconds since the start", "", false, {}};
  for (auto& run : runs) speed.series.push_back(binned(run.name, throughput(run, units), kBins));
  html += figure(speed, unit_name + " a second");
  html += curve(runs, {"Budget spent", "seconds since the start", "", false, {}}, "seconds", "fraction", nullptr, "fraction");
  return html;
}

struct ResultRow {
  const char *key, *name;
  int better;  // 1: more, -1: less, 0: neither
};
constexpr ResultRow kRows[] = {{"val_bits_per_byte", "validation, bits per byte", -1}, {"val_accuracy", "validation, accuracy", 1}, {"val_loss", "validation, loss", -1},
                               {"loss", "training loss, last step", 0},                 {"steps", "steps", 0},                      {"tokens", "tokens", 0},
                               {"examples", "examples", 0},                             {"parameters", "parameters", 0},            {"seconds_training", "seconds of training", 0},
                               {"seconds_total", "seconds in all", 0},                  {"budget_seconds", "budget, seconds", 0},   {"peak_rss_mb", "peak memory, MB", 0},
                               {"seconds_stalled", "seconds waiting for data", 0}};

std::string heads(const std::vector<ReportedRun>& runs, const char* first) {
  std::string html = fmt::format("<tr><th>{}</th>", first);
  for (auto& run : runs) html += fmt::format("<th>{}</th>", escaped(run.name));
  return html + "</tr>";
}

std::string result_table(const std::vector<ReportedRun>& runs) {
  std::string html = "<div class=\"scroll\"><table>" + heads(runs, "");
  for (auto& row : kRows) {
    double best = std::nan("");
    for (auto& run : runs) {
      const double value = number_of(run.result, row.key);
      if (std::isfinite(value) && (!std::isfinite(best) || (value - best) * row.better > 0)) best = value;
    }
    if (!std::isfinite(best)) continue;
    html += fmt::format("<tr><td>{}</td>", row.name);
    for (auto& run : runs) {
      const double value = number_of(run.result, row.key);
      html += fmt::format("<td{}>{}</td>", runs.size() > 1 && row.better != 0 && value == best ? " class=\"best\"" : "",
                          !std::isfinite(value) ? "-" : std::floor(value) == value && std::abs(value) < 1e7 ? fmt::format("{:.0f}", value) : fmt::format("{:.5g}", value));
    }
    html += "</tr>";
  }
  return html + "</table></div>\n";
}

std::string difference_table(const std::vector<ReportedRun>& runs) {
  const auto differ = recipe_differences(runs);
  if (runs.size() < 2) return "";
  if (differ.empty()) return "<h2>Recipes</h2><p>The same in every key.</p>\n";
  std::string html = "<h2>Recipe keys that differ</h2><div class=\"scroll\"><table>" + heads(runs, "key");
  for (auto& [key, values] : differ) {
    html += fmt::format("<tr><td>{}</td>", escaped(key));
    for (auto& value : values) html += fmt::format("<td>{}</td>", escaped(value));
    html += "</tr>";
  }
  return html + "</table></div>\n";
}

std::string notes_and_recipe(const ReportedRun& run) {
  std::string html, notes;
  for (auto& line : run.log)
    if (line.contains("note") && line["note"].is_string()) notes += fmt::format("<li>step {}: {}</li>", short_number(number_of(line, "step")), escaped(line["note"].get<std::string>()));
  html += fmt::format("<h2>{}</h2>", escaped(run.name));
  if (run.result.is_null()) html += "<p>This run has not ended: it has no result yet.</p>";
  if (!notes.empty()) html += "<ul>" + notes + "</ul>";
  std::string recipe;
  for (auto& [key, value] : run.recipe) recipe += key + " = " + value + "\n";
  return html + fmt::format("<details><summary>Recipe</summary><pre>{}</pre></details>\n", escaped(recipe));
}

}  // namespace

std::map<std::string, std::vector<std::string>> recipe_differences(const std::vector<ReportedRun>& runs) {
  std::set<std::string> keys;
  for (auto& run : runs)
    for (auto& [key, value] : run.recipe) keys.insert(key);
  std::map<std::string, std::vector<std::string>> differ;
  for (auto& key : keys) {
    std::vector<std::string> values;
    for (auto& run : runs) values.push_back(run.recipe.contains(key) ? run.recipe.at(key) : "-");
    if (std::set<std::string>(values.begin(), values.end()).size() > 1) differ[key] = values;
  }
  return differ;
}

std::string report_page(const std::vector<ReportedRun>& runs) {
  std::string title;
  for (auto& run : runs) title += (title.empty() ? "" : " · ") + run.name;
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><title>huajin: {}</title><style>{}{}</style></head><body>\n",
      escaped(title), kStyle, colour_rules());
  html += fmt::format("<h1>{}</h1><p>Every number is from the runs' own logs. Curves: the mean of each 240th of a run; bands: from the tenth to the ninetieth percentile of its steps.</p>\n",
                      escaped(title));
  if (runs.size() > 1) {
    html += "<div class=\"key\">";
    for (size_t i = 0; i < runs.size(); ++i) html += fmt::format("<span><b class=\"s{}\"></b>{}</span>", i % 8, escaped(runs[i].name));
    html += "</div>\n";
  }
  html += "<h2>Results</h2>" + result_table(runs) + "<h2>Curves</h2><div class=\"charts\">" + charts(runs) + "</div>\n" + difference_table(runs);
  for (auto& run : runs) html += notes_and_recipe(run);
  return html + "</body></html>\n";
}

}  // namespace huajin
