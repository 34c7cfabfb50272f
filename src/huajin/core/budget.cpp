#include "huajin/core/budget.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

constexpr const char* kAllowed =
    "write a number and a unit, such as 90s, 10m, 2h, 500step, 50Mtok, 10ksample, 3epoch or 1e15flop; several: \"2h, 500step\"";

struct Unit {
  const char* name;
  double Limits::*limit;
  double factor;
};
constexpr Unit kUnits[] = {
    {"s", &Limits::seconds, 1},        {"sec", &Limits::seconds, 1},      {"m", &Limits::seconds, 60},        {"min", &Limits::seconds, 60},
    {"h", &Limits::seconds, 3600},     {"d", &Limits::seconds, 86400},    {"step", &Limits::steps, 1},        {"steps", &Limits::steps, 1},
    {"tok", &Limits::tokens, 1},       {"token", &Limits::tokens, 1},     {"tokens", &Limits::tokens, 1},     {"sample", &Limits::examples, 1},
    {"samples", &Limits::examples, 1}, {"example", &Limits::examples, 1}, {"examples", &Limits::examples, 1}, {"epoch", &Limits::epochs, 1},
    {"epochs", &Limits::epochs, 1},    {"flop", &Limits::flops, 1},       {"flops", &Limits::flops, 1},
};
const Unit* find_unit(std::string_view name) {
  for (auto& unit : kUnits)
    if (name == unit.name) return &unit;
  return nullptr;
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

void parse_one(std::string_view part, std::string_view source, Limits& limits) {
  const auto refuse = [&](const std::string& what) -> void {
    throw UserError(fmt::format("{}: budget \"{}\": {}; {}", source, part, what, kAllowed));
  };
  if (part.empty()) refuse("empty");
  if (part.front() == '-') refuse("negative");
  double number = 0;
  if (!(part.front() >= '0' && part.front() <= '9') && part.front() != '.') refuse("does not start with a number");
  const auto [end, failed] = std::from_chars(part.data(), part.data() + part.size(), number);
  if (failed != std::errc() || !std::isfinite(number)) refuse("no number that can be used");
  std::string_view unit_name = trimmed(part.substr(static_cast<size_t>(end - part.data())));
  if (unit_name.empty()) refuse("has no unit");
  const Unit* unit = find_unit(unit_name);
  if (unit == nullptr) {  // a prefix, unless the whole is a unit ("min" is no milli-in)
    const std::string_view prefixes = "kMGT";
    const size_t at = prefixes.find(unit_name.front());
    unit = at == prefixes.npos ? nullptr : find_unit(unit_name.substr(1));
    if (unit == nullptr) refuse(fmt::format("unknown unit \"{}\"", unit_name));
    number *= std::pow(1000.0, static_cast<double>(at) + 1);
  }
  number *= unit->factor;
  if (!(number > 0)) refuse("must be greater than 0");
  limits.*(unit->limit) = std::min(limits.*(unit->limit), number);
}

double clock_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds since boot at which the kernel made this process; now, if the kernel does not say.
double kernel_start() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  size_t at = text.rfind(')');  // the name before it may hold anything
  if (at == std::string::npos) return clock_seconds(CLOCK_BOOTTIME);
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return clock_seconds(CLOCK_BOOTTIME);
  return std::strtod(text.c_str() + at, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double started_at() {
  const double kernel = kernel_start();
  const char* given = std::getenv("HUAJIN_STARTED_AT");
  if (given == nullptr) return kernel;
  const double told = std::strtod(given, nullptr);
  // A value that was left in the environment by something else must not eat the budget.
  const bool believable = told >= kernel - 60 && told <= clock_seconds(CLOCK_BOOTTIME);
  return believable ? told : kernel;
}

std::string plain(double value) { return value < 1e15 && value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value); }

}  // namespace

bool Limits::any() const {
  for (const double limit : {seconds, steps, examples, tokens, epochs, flops})
    if (limit < kNone) return true;
  return false;
}

Limits parse_limits(std::string_view text, std::string_view source) {
  Limits limits;
  size_t begin = 0;
  while (true) {
    size_t end = begin;
    while (end < text.size() && text[end] != ',' && !(text[end] == '+' && (end == 0 || (text[end - 1] != 'e' && text[end - 1] != 'E')))) ++end;
    parse_one(trimmed(text.substr(begin, end - begin)), source, limits);
    if (end == text.size()) return limits;
    begin = end + 1;
  }
}

std::string to_string(const Limits& limits) {
  std::string text;
  const auto add = [&](double value, const char* unit) {
    if (value < Limits::kNone) text += (text.empty() ? "" : ", ") + plain(value) + unit;
  };
  add(limits.seconds, "s");
  add(limits.steps, "step");
  add(limits.tokens, "tok");
  add(limits.examples, "sample");
  add(limits.epochs, "epoch");
  add(limits.flops, "flop");
  return text;
}

double seconds_since_start() {
  static const double start = started_at();
  return std::max(0.0, clock_seconds(CLOCK_BOOTTIME) - start);
}

Budget::Budget(Limits limits, double spent_seconds, double epoch_units, bool units_are_tokens)
    : limits_(limits), spent_seconds_(spent_seconds), epoch_units_(epoch_units), units_are_tokens_(units_are_tokens) {}

double Budget::fraction(const Progress& progress, double elapsed_seconds) const {
  const auto counted = static_cast<double>(units_are_tokens_ ? progress.tokens : progress.examples);
  double most = 0;
  if (limits_.seconds < Limits::kNone) {
    const double usable = limits_.seconds - reserved_;
    most = usable > 0 ? std::max(0.0, elapsed_seconds) / usable : 1;
  }
  most = std::max(most, static_cast<double>(progress.step) / limits_.steps);
  most = std::max(most, static_cast<double>(progress.tokens) / limits_.tokens);
  most = std::max(most, static_cast<double>(progress.examples) / limits_.examples);
  if (epoch_units_ > 0) most = std::max(most, counted / epoch_units_ / limits_.epochs);
  most = std::max(most, progress.flops / limits_.flops);
  return std::min(most, 1.0);
}

}  // namespace huajin
