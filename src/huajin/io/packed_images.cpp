#include "huajin/io/packed_images.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "huajin/core/errors.h"
#include "huajin/io/hash.h"
#include "huajin/io/json.h"

namespace huajin {
namespace {

constexpr char kMagic[] = "huajimg1";
constexpr size_t kPage = size_t{1} << 20;

size_t padded(size_t n) { return (n + 63) / 64 * 64; }

Json page_hashes(Bytes body) {
  Json pages = Json::array();
  for (size_t at = 0; at < body.size(); at += kPage) pages.push_back(xxh3_hex(body.subspan(at, std::min(kPage, body.size() - at))));
  return pages;
}

}  // namespace

void write_packed_images(const std::string& path, const ImageSet& set, const std::string& key) {
  std::string body(set.labels.size() * 4, '\0');
  std::memcpy(body.data(), set.labels.data(), body.size());
  body.append(reinterpret_cast<const char*>(set.pixels.data()), set.pixels.size());
  Json header = {{"count", set.count()},        {"channels", set.shape.channels},       {"height", set.shape.height}, {"width", set.shape.width},
                 {"classes", set.classes},      {"validation_from", set.validation_from}, {"key", key},               {"damaged", set.damaged.size()},
                 {"pages", page_hashes(as_bytes(body))}};
  header["hash"] = xxh3_hex(json_text(header));
  const std::string text = json_text(header);
  std::string file(kMagic, 8);
  const uint64_t length = text.size();
  file.append(reinterpret_cast<const char*>(&length), 8);
  file += text;
  file.resize(padded(file.size()), '\0');
  file += body;
  write_atomically(path, file);
}

PackedImages::PackedImages(const std::string& path) : view_(std::make_unique<FileView>(path)) {
  const Bytes file = view_->bytes();
  const auto damaged = [&](const std::string& what) { return DamagedError(fmt::format("{}: {}; delete the file, it will be made again", path, what)); };
  uint64_t length = 0;
  if (file.size() < 16 || std::memcmp(file.data(), kMagic, 8) != 0) throw damaged("no packed images");
  std::memcpy(&length, file.data() + 8, 8);
  if (length > file.size() - 16) throw damaged("the header is longer than the file");
  Json header = parse_json(as_text(file.subspan(16, length)), path);
  const std::string hash = string_member(header, "hash", path);
  header.erase("hash");
  if (xxh3_hex(json_text(header)) != hash) throw damaged("the header was changed");
  count_ = integer_member(header, "count", path);
  validation_from_ = integer_member(header, "validation_from", path);
  damaged_ = integer_member(header, "damaged", path);
  shape_ = {integer_member(header, "channels", path), integer_member(header, "height", path), integer_member(header, "width", path)};
  key_ = string_member(header, "key", path);
  for (auto& name : member(header, "classes", path)) classes_.push_back(name.get<std::string>());
  const size_t begin = padded(16 + length);
  const size_t expected = static_cast<size_t>(count_) * (4 + static_cast<size_t>(shape_.pixels()));
  if (begin > file.size() || file.size() - begin != expected) throw damaged(fmt::format("{} bytes of images, expected {}", begin > file.size() ? 0 : file.size() - begin, expected));
  if (page_hashes(file.subspan(begin)) != member(header, "pages", path)) throw damaged("a page was changed");
  labels_ = file.data() + begin;
  pixels_ = reinterpret_cast<const uint8_t*>(file.data() + begin + static_cast<size_t>(count_) * 4);
  for (int64_t i = 0; i < count_; ++i)
    if (label(i) >= classes_.size()) throw damaged(fmt::format("image {} has the label {} of {} classes", i, label(i), classes_.size()));
}

uint32_t PackedImages::label(int64_t i) const {
  uint32_t value = 0;
  std::memcpy(&value, labels_ + i * 4, 4);
  return value;
}

}  // namespace huajin
