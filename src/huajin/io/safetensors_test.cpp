#include "huajin/io/safetensors.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace huajin {
namespace {
namespace fs = std::filesystem;

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-st-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, const std::string& content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }
  std::string folder_;
};

std::string with_length(uint64_t length, const std::string& rest) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + rest;
}
std::string with_header(const std::string& header, const std::string& data = "") { return with_length(header.size(), header + data); }
// {"a": {...}} with these fields.
std::string one_tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}
std::string safetensors_refusal(const std::string& file) {
  try {
    parse_safetensors(as_bytes(file), "w.safetensors");
  } catch (const DamagedError& e) {
    return e.what();
  }
  return "accepted";
}

struct Malformed {
  const char* what;
  std::string file;
  const char* message;  // a part that no other row has
};
std::vector<Malformed> malformed_files() {
  const std::string b16 = one_tensor("F32", "[2,2]", "[0,16]"), data(16, 'x');
  const std::string two = R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":)";
  return {
      {"empty file", "", "has 0 bytes"},
      {"seven bytes", "1234567", "has 7 bytes"},
      {"huge length", with_length(UINT64_MAX, "{}"), "at most 100000000 is allowed"},
      {"length just over the bound", with_length(100'000'001, "{}"), "header length is 100000001, at most"},
      {"length beyond the file", with_length(50, "{}"), "only 2 bytes follow"},
      {"no header", with_length(0, ""), "does not begin with '{'"},
      {"header that is a list", with_header("[]"), "does not begin"},
      {"broken JSON", with_header("{\"a\":"), "not valid JSON"},
      {"invalid UTF-8", with_header("{\"\xff\":1}"), "UTF-8"},
      {"deep JSON", with_header("{\"a\":" + std::string(100000, '[')), "nested deeper"},
      {"name twice", with_header(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
       "'a' twice"},
      {"unknown dtype", with_header(one_tensor("F31", "[1]", "[0,4]"), "1234"), "dtype 'F31'"},
      {"no dtype", with_header(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "x"), "'dtype' is missing"},
      {"no shape", with_header(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "x"), "'shape' is missing"},
      {"no offsets", with_header(R"({"a":{"dtype":"U8","shape":[1]}})", "x"), "'data_offsets' is missing"},
      {"negative size", with_header(one_tensor("U8", "[-1]", "[0,1]"), "x"), "shape holds -1"},
      {"fractional size", with_header(one_tensor("U8", "[1.5]", "[0,1]"), "x"), "shape holds 1.5"},
      {"size beyond 63 bits", with_header(one_tensor("U8", "[18446744073709551615]", "[0,1]"), "x"), "shape holds 18446744073709551615"},
      {"product overflows", with_header(one_tensor("F32", "[4294967296,4294967296]", "[0,0]")), "more elements than 64 bits"},
      {"product overflows only with the dtype", with_header(one_tensor("F64", "[2305843009213693952]", "[0,0]")), "more elements than 64 bits"},
      {"offsets swapped", with_header(one_tensor("F32", "[2,2]", "[16,0]"), data), "[16, 0] do not lie"},
      {"offsets out of the file", with_header(one_tensor("F32", "[2,2]", "[16,32]"), data), "[16, 32] do not lie"},
      {"negative offset", with_header(one_tensor("F32", "[2,2]", "[-16,0]"), data), "two integers from 0"},
      {"three offsets", with_header(one_tensor("F32", "[2,2]", "[0,8,16]"), data), "two integers from 0"},
      {"shape does not fit", with_header(one_tensor("F32", "[2,3]", "[0,16]"), data), "its shape needs 24"},
      {"overlap", with_header(two + "[4,12]}}", std::string(12, 'x')), "overlaps"},
      {"the same bytes twice", with_header(two + "[0,8]}}", std::string(8, 'x')), "overlaps"},
      {"gap", with_header(two + "[9,17]}}", std::string(17, 'x')), "belong to no tensor"},
      {"gap at the start", with_header(one_tensor("U8", "[4]", "[4,8]"), "12345678"), "belong to no tensor"},
      {"trailing bytes", with_header(b16, data + "!"), "1 trailing bytes"},
      {"truncated data", with_header(b16, data.substr(1)), "[0, 16] do not lie in the 15 bytes"},
      {"entry is a number", with_header(R"({"a":3})"), "an object with key 'dtype'"},
      {"metadata is a list", with_header(R"({"__metadata__":[]})"), "__metadata__ is no object"},
      {"metadata holds a number", with_header(R"({"__metadata__":{"a":1}})"), "key 'a' is no string"},
      {"half a byte", with_header(one_tensor("F4", "[3]", "[0,1]"), "x"), "end inside a byte"},
  };
}

TEST(SafetensorsHostile, EachMalformedFileGivesItsOwnError) {
  for (const Malformed& row : malformed_files()) {
    const std::string message = safetensors_refusal(row.file);
    EXPECT_NE(message.find(row.message), std::string::npos) << row.what << ": " << message;
    EXPECT_EQ(message.rfind("w.safetensors: ", 0), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_LT(message.size(), 500u);
  }
}

TEST(SafetensorsHostile, EveryTruncationOfAGoodFileIsRefused) {
  const std::string good =
      with_header(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", std::string(16, 'x'));
  ASSERT_EQ(safetensors_refusal(good), "accepted");
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(safetensors_refusal(good.substr(0, n)), "accepted") << n;
}

TEST(SafetensorsHostile, AcceptsWhatTheFormatAllows) {
  EXPECT_EQ(parse_safetensors(as_bytes(with_header("{}")), "f").tensors.size(), 0u);
  EXPECT_EQ(safetensors_refusal(with_header("{}   ")), "accepted");                                                  // padding
  EXPECT_EQ(safetensors_refusal(with_header(one_tensor("F32", "[]", "[0,4]"), "1234")), "accepted");                 // scalar
  EXPECT_EQ(safetensors_refusal(with_header(one_tensor("F32", "[0,9223372036854775807,5]", "[0,0]"))), "accepted");  // empty
  const std::string file = with_header(one_tensor("U8", "[3]", "[0,3]") + " ", "abc");  // the views point into it
  const auto parsed = parse_safetensors(as_bytes(file), "f");
  EXPECT_EQ(as_text(parsed.tensors.at(0).data), "abc");
  EXPECT_TRUE(parsed.metadata.empty());
}

// Tensors of many types and shapes with reproducible bytes.
struct Sample {
  std::vector<std::string> bytes;
  std::vector<TensorToStore> tensors;
  Sample() {
    const std::vector<std::pair<std::string, std::vector<int64_t>>> kinds = {{"F32", {3, 5}},    {"BF16", {7}},   {"U8", {13}},
                                                                             {"F64", {2, 1, 2}}, {"I64", {}},     {"F16", {0, 4}},
                                                                             {"BOOL", {3}},      {"F32", {1001}}, {"F8_E4M3", {5}}};
    for (const auto& [dtype, shape] : kinds) {
      std::string data(tensor_bytes(dtype, shape, "sample"), '\0');
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 37 + bytes.size() * 11);
      bytes.push_back(data);
    }
    for (size_t i = 0; i < kinds.size(); ++i)
      tensors.push_back(
          {"layer." + std::to_string(i) + (i == 1 ? ".\"näme\"" : ".weight"), kinds[i].first, kinds[i].second, bytes[i].data(), bytes[i].size()});
  }
};

TEST_F(SafetensorsTest, WritesAndReadsBack) {
  const Sample sample;
  const StoredFile stored = write_safetensors(at("m.safetensors"), sample.tensors, {{"format", "pt"}});
  const Safetensors file(at("m.safetensors"));
  ASSERT_EQ(file.tensors().size(), sample.tensors.size());
  EXPECT_EQ(file.metadata().at("format"), "pt");
  for (const TensorToStore& want : sample.tensors) {
    const StoredTensor* got = file.find(want.name);
    ASSERT_TRUE(got) << want.name;
    EXPECT_EQ(got->dtype, want.dtype);
    EXPECT_EQ(got->shape, want.shape);
    EXPECT_EQ(as_text(got->data), std::string_view(static_cast<const char*>(want.data), want.bytes));
    EXPECT_EQ(got->offset % static_cast<uint64_t>(dtype_bits(want.dtype) / 8), 0u) << want.name;
  }
  EXPECT_EQ(stored.hash, xxh3_hex(read_file(at("m.safetensors"))));
  EXPECT_EQ(stored.bytes, file_size(at("m.safetensors")));
  for (const StoredFile::Tensor& tensor : stored.tensors) {
    EXPECT_EQ(tensor.hash, xxh3_hex(file.find(tensor.name)->data));
    EXPECT_EQ(tensor.offset, file.find(tensor.name)->offset);
  }
  EXPECT_FALSE(file.find("layer"));
}

TEST_F(SafetensorsTest, WriterRefusesBeforeAnythingIsWritten) {
  const float x[2] = {};
  EXPECT_THROW(write_safetensors(at("a"), {{"a", "F32", {2}, x, 8}, {"a", "F32", {2}, x, 8}}), UserError);
  EXPECT_THROW(write_safetensors(at("a"), {{"a", "F32", {3}, x, 8}}), UserError);
  EXPECT_THROW(write_safetensors(at("a"), {{"__metadata__", "F32", {2}, x, 8}}), UserError);
  EXPECT_FALSE(exists(at("a")));
}

// G-11: ours -> a reader and writer that share no code with us -> ours.
TEST_F(SafetensorsTest, RoundTripThroughPythonsStandardLibrary) {
  if (std::system("python3 -c 'import json' 2>/dev/null") != 0) GTEST_SKIP() << "python3 is not installed";
  const Sample sample;
  write_safetensors(at("ours"), sample.tensors, {{"format", "pt"}});
  const std::string script = std::string(HUAJIN_SOURCE_DIR) + "/tests/golden/read_safetensors.py";
  ASSERT_EQ(std::system(("python3 '" + script + "' " + at("ours") + " " + at("theirs") + " > " + at("list")).c_str()), 0);
  std::string expected;
  std::map<std::string, const TensorToStore*> sorted;
  for (const TensorToStore& tensor : sample.tensors) sorted[tensor.name] = &tensor;
  for (const auto& [name, tensor] : sorted) {
    std::string shape;
    for (int64_t size : tensor->shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
    char crc[9];
    std::snprintf(crc, sizeof crc, "%08lx", ::crc32(0, static_cast<const Bytef*>(tensor->data), static_cast<uInt>(tensor->bytes)));
    expected += name + " " + tensor->dtype + " " + shape + " " + crc + "\n";
  }
  EXPECT_EQ(read_file(at("list")), expected);
  const Safetensors theirs(at("theirs"));
  ASSERT_EQ(theirs.tensors().size(), sample.tensors.size());
  for (const TensorToStore& want : sample.tensors) {
    const StoredTensor* got = theirs.find(want.name);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->shape, want.shape);
    EXPECT_EQ(as_text(got->data), std::string_view(static_cast<const char*>(want.data), want.bytes));
  }
  std::ofstream(at("ours"), std::ios::app) << '!';
  EXPECT_NE(std::system(("python3 '" + script + "' " + at("ours") + " >/dev/null 2>&1").c_str()), 0);
  EXPECT_THROW(Safetensors{at("ours")}, DamagedError);
}

TEST_F(SafetensorsTest, ReadsShards) {
  const float a[2] = {1, 2}, b[3] = {3, 4, 5};
  write_safetensors(at("model-00001-of-00002.safetensors"), {{"a", "F32", {2}, a, 8}});
  write_safetensors(at("model-00002-of-00002.safetensors"), {{"b", "F32", {3}, b, 12}});
  const std::string map = R"({"metadata":{"total_size":20},"weight_map":{"a":"model-00001-of-00002.safetensors","b":")";
  put("model.safetensors.index.json", map + "model-00002-of-00002.safetensors\"}}");
  const Safetensors model(folder_);
  EXPECT_EQ(model.files().size(), 2u);
  EXPECT_EQ(std::memcmp(model.find("b")->data.data(), b, 12), 0);
  const std::vector<std::pair<std::string, std::string>> bad = {
      {map + "../model-00002-of-00002.safetensors\"}}", "has '..'"},
      {map + "/etc/passwd\"}}", "is absolute"},
      {map + "absent.safetensors\"}}", "is missing"},
      {map + "model-00001-of-00002.safetensors\"}}", "is not in"},
      {map + "model-00002-of-00002.safetensors\",\"c\":\"model-00002-of-00002.safetensors\"}}", "'c' is not in"},
      {R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":3}})", "is no string"},
      {R"({"weight_map":[]})", "weight_map is array"},
      {R"({})", "'weight_map' is missing"},
      {"", "not valid JSON"}};
  for (const auto& [text, message] : bad) {
    put("model.safetensors.index.json", text);
    try {
      Safetensors refused(folder_);
      ADD_FAILURE() << text;
    } catch (const DamagedError& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  }
  write_safetensors(at("again.safetensors"), {{"a", "F32", {2}, a, 8}, {"b", "F32", {3}, b, 12}});
  put("model.safetensors.index.json", map + "again.safetensors\"}}");  // a is in two shards
  EXPECT_THROW(Safetensors{folder_}, DamagedError);
  fs::remove(at("model.safetensors.index.json"));
  EXPECT_THROW(Safetensors{folder_}, UserError);
}

}  // namespace
}  // namespace huajin
