#include "huajin/core/toml_text.h"

#include <fmt/format.h>

#include <charconv>

namespace huajin {

std::string toml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += '\\', result += c;
    else if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\u{:04x}", byte);
    else
      result += c;
  }
  return result + '"';
}

bool is_quoted(std::string_view text) { return text.size() >= 2 && text.front() == '"' && text.back() == '"'; }

std::string toml_unquoted(std::string_view quoted_text) {
  std::string result;
  const std::string_view inner = quoted_text.substr(1, quoted_text.size() - 2);
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\' || i + 1 == inner.size()) {
      result += inner[i];
    } else if (inner[i + 1] == 'u' && i + 5 < inner.size()) {
      unsigned code = 0;
      std::from_chars(inner.data() + i + 2, inner.data() + i + 6, code, 16);
      result += static_cast<char>(code);
      i += 5;
    } else {
      result += inner[++i];
    }
  }
  return result;
}

std::string number_text(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".enif") == std::string::npos ? text + ".0" : text;
}

std::string shortened(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 60)) result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text.size() > 60 ? result + "..." : result;
}

}  // namespace huajin
