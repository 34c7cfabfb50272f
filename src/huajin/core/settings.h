// One list of fields a config struct: recipe parsing, `--set`, `explain`, the card's table and the log all come from it.
//
//   struct SamConfig {
//     double rho = 0.05;
//     void fields(Fields& f) { f.number("rho", rho, {.least = 0, .open = true}, "radius of the neighbourhood, in units of the weights"); }
//   };
#pragma once
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace huajin {

struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool open = false;       // `least` itself is not allowed
  bool open_most = false;  // `most` itself is not allowed
};

class Fields {
 public:
  virtual ~Fields() = default;
  virtual void number(std::string_view name, double& value, Range range, std::string_view help) = 0;
  virtual void integer(std::string_view name, int64_t& value, Range range, std::string_view help) = 0;
  virtual void flag(std::string_view name, bool& value, std::string_view help) = 0;
  // `choices` empty: any text.
  virtual void text(std::string_view name, std::string& value, std::vector<std::string_view> choices, std::string_view help) = 0;
};

}  // namespace huajin
