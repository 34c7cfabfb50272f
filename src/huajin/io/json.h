// JSON that may come from anywhere: bounded in size, depth and number of values, keys that come twice refused. Include <nlohmann/json.hpp> where
// values are used.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace huajin {

using Json = nlohmann::json;  // objects sort their keys, so equal values give equal text

struct JsonLimits {
  uint64_t bytes = uint64_t{64} << 20;
  int depth = 32;                       // of arrays and objects inside each other
  uint64_t values = uint64_t{8} << 20;  // bounds memory: a value may take 2 bytes of text and 16 to 100 of memory
};

// DamagedError "where: what, at byte n" for anything but one JSON value in valid UTF-8 within the limits. No comments, no trailing bytes.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});
// Reads the file and parses it; where = path. A file that can't be read is a UserError.
Json read_json(const std::string& path, const JsonLimits& limits = {});

// Numbers that are not finite become null; doubles are written so that they read back equal; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const Json& value, int indent = -1);

// value[key], or DamagedError "where: key is missing / is a string, not a number".
const Json& member(const Json& object, std::string_view key, const std::string& where);
std::string string_member(const Json& object, std::string_view key, const std::string& where);
int64_t integer_member(const Json& object, std::string_view key, const std::string& where);
double number_member(const Json& object, std::string_view key, const std::string& where);

}  // namespace huajin
