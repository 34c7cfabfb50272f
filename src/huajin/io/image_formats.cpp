#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "huajin/core/errors.h"
#include "huajin/io/image_set.h"

namespace huajin {
namespace {

uint32_t big_endian(Bytes file, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint32_t>(file[at + i]);
  return value;
}

// Octal text, or base 256 for large sizes.
bool tar_number(Bytes field, uint64_t& value) {
  value = 0;
  if ((static_cast<uint8_t>(field[0]) & 0x80) != 0) {
    for (size_t i = 1; i < field.size(); ++i) {
      if (value >> 54 != 0) return false;
      value = value << 8 | static_cast<uint64_t>(field[i]);
    }
    return true;
  }
  for (std::byte b : field) {
    const char c = static_cast<char>(b);
    if (c == ' ' || c == '\0') continue;
    if (c < '0' || c > '7' || value >> 60 != 0) return false;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

std::string tar_text(Bytes field) {
  std::string text(as_text(field));
  return text.substr(0, text.find('\0'));
}

// "27 path=a/b.jpg\n" among the records of a pax header; "" if it has none.
std::string pax_path(std::string_view records) {
  std::string path;
  while (!records.empty()) {
    size_t length = 0, digits = 0;
    for (; digits < records.size() && digits < 10 && records[digits] >= '0' && records[digits] <= '9'; ++digits)
      length = length * 10 + static_cast<size_t>(records[digits] - '0');
    if (length > records.size() || length < digits + 2 || records[digits] != ' ') return path;
    const std::string_view record = records.substr(digits + 1, length - digits - 2);  // without the line's end
    if (record.starts_with("path=")) path = record.substr(5);
    records.remove_prefix(length);
  }
  return path;
}

void check_tar_name(const std::string& name, const std::string& where) {
  bool climbs = name.empty() || name[0] == '/';
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    climbs = climbs || name.substr(at, end - at) == "..";
    at = end + 1;
  }
  if (climbs) throw DamagedError(fmt::format("{}: the name \"{}\" leaves the archive's folder; such archives are not read", where, name.substr(0, 80)));
}

}  // namespace

std::string inflate_if_packed(Bytes file, const std::string& where, uint64_t most) {
  if (file.size() < 2 || static_cast<uint8_t>(file[0]) != 0x1f || static_cast<uint8_t>(file[1]) != 0x8b) return std::string(as_text(file));
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) throw Error(kExitInternal, "zlib does not start");
  std::string out;
  std::string chunk(size_t{1} << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(file.size(), UINT32_MAX));
  int code = Z_OK;
  while (code == Z_OK && out.size() <= most) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > most) throw DamagedError(fmt::format("{}: unpacks to more than {} bytes", where, most));
  if (code != Z_STREAM_END) throw DamagedError(fmt::format("{}: the gzip data is truncated or damaged", where));
  return out;
}

IdxFile parse_idx(Bytes file, const std::string& where, uint64_t most) {
  if (file.size() < 4) throw DamagedError(fmt::format("{}: {} bytes, too short for an IDX file", where, file.size()));
  const uint32_t magic = big_endian(file, 0);
  const size_t dimensions = magic & 0xff;
  if ((magic >> 8) != 8 || dimensions < 1 || dimensions > 4)
    throw DamagedError(fmt::format("{}: magic {:#010x}; an IDX file of bytes begins with 0x00000801 (labels) or 0x00000803 (images)", where, magic));
  if (file.size() < 4 + 4 * dimensions) throw DamagedError(where + ": truncated in the header");
  IdxFile idx;
  uint64_t total = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    idx.shape.push_back(big_endian(file, 4 + 4 * d));
    const auto n = static_cast<uint64_t>(idx.shape.back());
    if (n != 0 && total > most / n) throw DamagedError(fmt::format("{}: the header promises more than {} bytes", where, most));
    total *= n;
  }
  const size_t begin = 4 + 4 * dimensions;
  if (file.size() - begin != total) throw DamagedError(fmt::format("{}: {} bytes of data, the header promises {}", where, file.size() - begin, total));
  const auto* data = reinterpret_cast<const uint8_t*>(file.data() + begin);
  idx.values.assign(data, data + total);
  return idx;
}

std::vector<TarEntry> parse_tar(Bytes file, const std::string& where) {
  std::vector<TarEntry> entries;
  std::string long_name;
  for (size_t at = 0; at + 512 <= file.size();) {
    const Bytes header = file.subspan(at, 512);
    uint64_t size = 0, checksum = 0, sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += (i >= 148 && i < 156) ? ' ' : static_cast<uint8_t>(header[i]);
    if (sum == 8 * ' ') break;  // a block of zeros ends the archive
    if (!tar_number(header.subspan(148, 8), checksum) || checksum != sum) throw DamagedError(fmt::format("{}: no tar header at byte {}", where, at));
    if (!tar_number(header.subspan(124, 12), size) || size > file.size() - at - 512) throw DamagedError(fmt::format("{}: the entry at byte {} is longer than the archive", where, at));
    const char type = static_cast<char>(header[156]);
    std::string name = tar_text(header.subspan(0, 100));
    if (std::memcmp(header.data() + 257, "ustar", 5) == 0 && header[345] != std::byte{0} && header[262] == std::byte{0}) name = tar_text(header.subspan(345, 155)) + "/" + name;
    const Bytes content = file.subspan(at + 512, size);
    at += 512 + (static_cast<size_t>(size) + 511) / 512 * 512;
    if (type == 'L') {  // GNU: the next entry's name
      long_name = tar_text(content);
      continue;
    }
    if (type == 'x') {  // pax: likewise
      long_name = pax_path(as_text(content));
      continue;
    }
    if (!long_name.empty()) name = std::exchange(long_name, std::string());
    if (type != '0' && type != '\0') continue;
    check_tar_name(name, where);
    entries.push_back({name, content});
  }
  return entries;
}

}  // namespace huajin
