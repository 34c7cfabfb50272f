#include "huajin/io/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/io/file.h"

namespace huajin {
namespace {

// Builds the value while it is read, so that a bound stops the parser at once. The parser itself keeps only one bit a level.
class BoundedReader {
 public:
  BoundedReader(const JsonLimits& limits, std::string& problem) : limits_(limits), problem_(problem) {}
  Json root;

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(Json::number_integer_t value) { return put(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return put(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return stop("holds binary data"); }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    auto [place, fresh] = stack_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
    if (!fresh) return stop(fmt::format("has key '{}' twice", place->first.substr(0, 100)));
    slot_ = &place->second;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    std::string why = error.what();
    if (const size_t colon = why.find(": "); colon != why.npos) why = why.substr(colon + 2);
    for (char& c : why)
      if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
    return stop(fmt::format("is not valid JSON at byte {}: {}", position, why.substr(0, 200)));
  }

 private:
  bool stop(std::string why) {
    problem_ = std::move(why);
    return false;
  }
  Json* place(Json&& value) {
    if (stack_.empty()) return &(root = std::move(value));
    if (!stack_.back()->is_array()) return &(*slot_ = std::move(value));
    auto& array = stack_.back()->get_ref<Json::array_t&>();
    array.push_back(std::move(value));
    return &array.back();
  }
  bool put(Json value) {
    if (++values_ > limits_.values) return stop(fmt::format("has more than {} values", limits_.values));
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (++values_ > limits_.values) return stop(fmt::format("has more than {} values", limits_.values));
    if (static_cast<int>(stack_.size()) >= limits_.depth) return stop(fmt::format("is nested deeper than {} levels", limits_.depth));
    stack_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  std::string& problem_;
  std::vector<Json*> stack_;  // an open value never moves: its parent gets no sibling before it is closed
  Json* slot_ = nullptr;
  uint64_t values_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    throw DamagedError(fmt::format("{}: JSON of {} bytes, at most {} are allowed; is it the right file?", where, text.size(), limits.bytes));
  std::string problem;
  BoundedReader reader(limits, problem);
  if (!Json::sax_parse(text.begin(), text.end(), &reader))
    throw DamagedError(fmt::format("{}: {}; get the file from its source again", where, problem));
  return std::move(reader.root);
}
Json read_json(const std::string& path, const JsonLimits& limits) { return parse_json(read_file(path, limits.bytes), path, limits); }

std::string json_text(const Json& value, int indent) { return value.dump(indent, ' ', false, Json::error_handler_t::replace); }

namespace {

const Json& typed_member(const Json& object, std::string_view key, const std::string& where, bool (*right)(const Json&), const char* wanted) {
  const Json& value = member(object, key, where);
  if (!right(value))
    throw DamagedError(fmt::format("{}: key '{}' is {}, {} is needed; get the file from its source again", where, key, value.type_name(), wanted));
  return value;
}

}  // namespace

const Json& member(const Json& object, std::string_view key, const std::string& where) {
  if (!object.is_object())
    throw DamagedError(fmt::format("{}: is {}, an object with key '{}' is needed; is it the right file?", where, object.type_name(), key));
  const auto found = object.find(std::string(key));
  if (found == object.end()) throw DamagedError(fmt::format("{}: key '{}' is missing; get the file from its source again", where, key));
  return *found;
}
std::string string_member(const Json& object, std::string_view key, const std::string& where) {
  return typed_member(
             object, key, where, [](const Json& v) { return v.is_string(); }, "a string")
      .get<std::string>();
}
int64_t integer_member(const Json& object, std::string_view key, const std::string& where) {
  const auto fits = [](const Json& v) { return v.is_number_integer() && !(v.is_number_unsigned() && v.get<uint64_t>() > uint64_t{INT64_MAX}); };
  return typed_member(object, key, where, fits, "an integer").get<int64_t>();
}
double number_member(const Json& object, std::string_view key, const std::string& where) {
  return typed_member(
             object, key, where, [](const Json& v) { return v.is_number(); }, "a number")
      .get<double>();
}

}  // namespace huajin
