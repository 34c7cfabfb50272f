// Values as TOML text, in one spelling: "text" in double quotes, true, false, 12, 0.5. What Choice::given holds.
#pragma once
#include <string>
#include <string_view>

namespace huajin {

std::string toml_quoted(std::string_view text);         // "a\"b", control characters as \u00XX
bool is_quoted(std::string_view text);
std::string toml_unquoted(std::string_view quoted_text);  // of toml_quoted()
std::string number_text(double value);             // the shortest that reads back as the same bits, always with a point or an exponent
std::string shortened(std::string_view text);      // at most 60 characters, printable ones, for messages

}  // namespace huajin
