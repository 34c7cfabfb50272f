#include "huajin/io/packed_images.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "huajin/core/errors.h"
#include "huajin/io/hash.h"
#include "huajin/io/json.h"

namespace huajin {
namespace {

constexpr char kMagic[] = "huajimg2";
constexpr size_t kPage = size_t{1} << 20;
constexpr int64_t kMostSide = 1 << 16;

size_t padded(size_t n) { return (n + 63) / 64 * 64; }

Json page_hashes(Bytes body) {
  Json pages = Json::array();
  for (size_t at = 0; at < body.size(); at += kPage) pages.push_back(xxh3_hex(body.subspan(at, std::min(kPage, body.size() - at))));
  return pages;
}

// Sum and sum of squares of each channel over the training part: exact.
std::pair<std::vector<uint64_t>, std::vector<uint64_t>> channel_sums(const ImageSet& set) {
  const auto channels = static_cast<size_t>(set.shape.channels), plane = static_cast<size_t>(set.shape.height * set.shape.width);
  std::vector<uint64_t> sums(channels), squares(channels);
  const uint8_t* p = set.pixels.data();
  for (int64_t i = 0; i < set.validation_from; ++i)
    for (size_t c = 0; c < channels; ++c)
      for (size_t left = plane; left > 0;) {
        const size_t n = std::min<size_t>(left, 32768);  // 32768 * 255^2 < 2^32
        uint32_t s = 0, q = 0;
        for (size_t k = 0; k < n; ++k) s += p[k], q += static_cast<uint32_t>(p[k]) * p[k];
        sums[c] += s, squares[c] += q, p += n, left -= n;
      }
  return {sums, squares};
}

Json header_of(const ImageSet& set, const std::string& key) {
  const auto [sums, squares] = channel_sums(set);
  Json header = {{"count", set.count()},     {"channels", set.shape.channels},         {"height", set.shape.height}, {"width", set.shape.width},
                 {"classes", set.classes},   {"validation_from", set.validation_from}, {"key", key},                 {"damaged", set.damaged.size()},
                 {"resized", set.resized},   {"sums", sums},                           {"squares", squares},         {"pages", page_hashes(std::as_bytes(std::span(set.pixels)))},
                 {"labels", xxh3_hex(std::as_bytes(std::span(set.labels)))}};
  header["first_damaged"] = std::vector<std::string>(set.damaged.begin(), set.damaged.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(set.damaged.size(), 5)));
  header["hash"] = xxh3_hex(json_text(header));
  return header;
}

std::vector<std::string> text_list(const Json& list) {
  std::vector<std::string> all;
  for (auto& text : list) all.push_back(text.get<std::string>());
  return all;
}

}  // namespace

void write_packed_images(const std::string& path, const ImageSet& set, const std::string& key) {
  const std::string text = json_text(header_of(set, key));
  std::string head(kMagic, 8);
  const uint64_t length = text.size();
  head.append(reinterpret_cast<const char*>(&length), 8);
  head += text;
  head.resize(padded(head.size()), '\0');
  const std::string folder = path.substr(0, path.rfind('/') + 1) + ".", temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  require_free_disk(folder, head.size() + set.labels.size() * 4 + set.pixels.size(), "packed images");
  remove_tree(temporary);
  try {
    FileWriter file(temporary);
    file.write(as_bytes(head));
    file.write(std::as_bytes(std::span(set.labels)));
    file.write(std::as_bytes(std::span(set.pixels)));
    file.finish();
    rename_path(temporary, path);
  } catch (const Error&) {
    std::remove(temporary.c_str());
    throw;
  }
  sync_folder(folder);
}

PackedImages::PackedImages(const std::string& path) : view_(std::make_unique<FileView>(path)) {
  const Bytes file = view_->bytes();
  const auto damaged = [&](const std::string& what) { return DamagedError(fmt::format("{}: {}; delete the file, it will be made again", path, what)); };
  uint64_t length = 0;
  if (file.size() < 16 || std::memcmp(file.data(), kMagic, 8) != 0) throw damaged("no packed images");
  std::memcpy(&length, file.data() + 8, 8);
  if (length > file.size() - 16) throw damaged("the header is longer than the file");
  const std::string_view text = as_text(file.subspan(16, length));
  if (!text.ends_with('}')) throw damaged("the header's length was changed");
  Json header = parse_json(text, path);
  const std::string hash = string_member(header, "hash", path);
  header.erase("hash");
  if (xxh3_hex(json_text(header)) != hash) throw damaged("the header was changed");
  count_ = integer_member(header, "count", path);
  validation_from_ = integer_member(header, "validation_from", path);
  damaged_ = integer_member(header, "damaged", path);
  resized_ = integer_member(header, "resized", path);
  shape_ = {integer_member(header, "channels", path), integer_member(header, "height", path), integer_member(header, "width", path)};
  if (count_ < 1 || count_ > int64_t{1} << 40 || validation_from_ < 1 || validation_from_ > count_ || (shape_.channels != 1 && shape_.channels != 3) || shape_.height < 1 ||
      shape_.height > kMostSide || shape_.width < 1 || shape_.width > kMostSide)
    throw damaged("the header's numbers make no sense");
  key_ = string_member(header, "key", path);
  classes_ = text_list(member(header, "classes", path));
  first_damaged_ = text_list(member(header, "first_damaged", path));
  const size_t begin = padded(16 + length), images = static_cast<size_t>(count_);
  if (begin > file.size() || (file.size() - begin) % (4 + static_cast<size_t>(shape_.pixels())) != 0 || (file.size() - begin) / (4 + static_cast<size_t>(shape_.pixels())) != images)
    throw damaged(fmt::format("{} bytes, not what {} images of {} x {} x {} take", file.size(), count_, shape_.channels, shape_.height, shape_.width));
  view_->will_read_all();
  if (xxh3_hex(file.subspan(begin, images * 4)) != string_member(header, "labels", path)) throw damaged("the labels were changed");
  if (page_hashes(file.subspan(begin + images * 4)) != member(header, "pages", path)) throw damaged("a page was changed");
  labels_ = file.data() + begin;
  pixels_ = reinterpret_cast<const uint8_t*>(file.data() + begin + images * 4);
  for (int64_t i = 0; i < count_; ++i)
    if (label(i) >= classes_.size()) throw damaged(fmt::format("image {} has the label {} of {} classes", i, label(i), classes_.size()));
  const double n = static_cast<double>(validation_from_) * static_cast<double>(shape_.height * shape_.width);
  for (size_t c = 0; c < static_cast<size_t>(shape_.channels); ++c) {
    mean_.push_back(static_cast<double>(member(header, "sums", path).at(c).get<uint64_t>()) / n);
    const double square = static_cast<double>(member(header, "squares", path).at(c).get<uint64_t>()) / n;
    deviation_.push_back(std::sqrt(std::max(square - mean_[c] * mean_[c], 1.0)));
  }
}

uint32_t PackedImages::label(int64_t i) const {
  uint32_t value = 0;
  std::memcpy(&value, labels_ + i * 4, 4);
  return value;
}

}  // namespace huajin
