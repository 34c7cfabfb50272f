#include "huajin/io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

std::string json_error(std::string_view text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "some.json", limits);
  } catch (const DamagedError& e) {
    return e.what();
  }
  return "";
}

TEST(JsonText, ParsesWhatTheLibraryParses) {
  for (const char* text :
       {"{}", "[]", "3", "-0.0", "\"a\\u0000b\"", R"({"a":[1,2.5,{"b":null}],"c":true,"d":{"e":[[],{}]}})", "18446744073709551615", " [1 , 2 ] "}) {
    const Json ours = parse_json(text, "t"), reference = Json::parse(text);
    EXPECT_EQ(ours, reference) << text;
    EXPECT_EQ(json_text(ours), reference.dump()) << text;
  }
}

TEST(JsonText, RefusesWithOneLineThatNamesTheFile) {
  for (const std::string& text : std::vector<std::string>{"", "{", "[1,]", "{\"a\":1,\"a\":2}", "{'a':1}", "nul", "[1] x", "// c\n1", "\"\xff\"",
                                                          "\"\n\"", "1e999", "NaN", "-", "{\"a\"}"}) {
    const std::string message = json_error(text);
    EXPECT_EQ(message.rfind("some.json: ", 0), 0u) << text << " gave: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_NE(json_error("{\"a\":1,\"a\":2}").find("'a' twice"), std::string::npos);
  EXPECT_NE(json_error("[1,]").find("byte 4"), std::string::npos) << json_error("[1,]");
}

TEST(JsonText, Bounds) {
  EXPECT_NE(json_error(std::string(1000000, '[')).find("deeper than 32"), std::string::npos);
  EXPECT_EQ(json_error("[[[]]]", {.depth = 3}), "");
  EXPECT_NE(json_error("[[[[]]]]", {.depth = 3}), "");
  EXPECT_NE(json_error("[1,2,3]", {.values = 3}).find("more than 3 values"), std::string::npos);
  EXPECT_EQ(json_error("[1,2]", {.values = 3}), "");
  EXPECT_NE(json_error("[1,2]", {.bytes = 4}).find("at most 4"), std::string::npos);
}

TEST(JsonText, FloatsAreFiniteOrNullAndReadBackEqual) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(json_text(Json{{"a", inf}, {"b", -inf}, {"c", std::nan("")}, {"d", 0.1}}), R"({"a":null,"b":null,"c":null,"d":0.1})");
  for (double x : {1.0 / 3, 1e-310, -0.0, 1.7976931348623157e308, 123456789012345678.0, 5e-324, 2.2250738585072011e-308}) {
    const double back = parse_json(json_text(Json(x)), "t").get<double>();
    EXPECT_EQ(std::memcmp(&back, &x, sizeof x), 0) << x;
  }
  EXPECT_EQ(json_text(Json("\xff")), "\"\xEF\xBF\xBD\"");
}

TEST(JsonText, TypedMembers) {
  const Json object = parse_json(R"({"s":"x","i":-3,"n":2.5,"u":18446744073709551615})", "f");
  EXPECT_EQ(string_member(object, "s", "f"), "x");
  EXPECT_EQ(integer_member(object, "i", "f"), -3);
  EXPECT_EQ(number_member(object, "n", "f"), 2.5);
  EXPECT_THROW(string_member(object, "i", "f"), DamagedError);
  EXPECT_THROW(integer_member(object, "n", "f"), DamagedError);
  EXPECT_THROW(integer_member(object, "u", "f"), DamagedError);
  EXPECT_THROW(member(object, "absent", "f"), DamagedError);
  EXPECT_THROW(member(Json::array(), "absent", "f"), DamagedError);
}

}  // namespace
}  // namespace huajin
