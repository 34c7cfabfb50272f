#include "huajin/io/token_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>

#include "huajin/core/errors.h"
#include "huajin/io/hash.h"

namespace huajin {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");
constexpr size_t kWords = 256, kHeaderBytes = 4 * kWords;
constexpr size_t kMark = 128, kVocabulary = 129, kShard = 130, kLast = 131, kHash = 132, kHashWords = 4;
constexpr uint32_t kMarkValue = 0x4B544A48;  // "HJTK"
constexpr uint64_t kMostTokens = INT32_MAX;  // the count is an int32
using Words = std::array<uint32_t, kWords>;

struct TokenFormat {
  uint32_t magic, version;
  int width;
};
constexpr TokenFormat kFormats[] = {{20240520, 1, 2}, {20240801, 7, 4}};

const TokenFormat* format_of(uint32_t magic) {
  for (const TokenFormat& format : kFormats)
    if (format.magic == magic) return &format;
  return nullptr;
}

std::string hash_of(Words words, Bytes ids) {
  std::fill_n(words.begin() + kHash, kHashWords, 0u);
  Hasher hasher;
  hasher.update(ids);
  hasher.update(std::as_bytes(std::span(words)));
  return hasher.hex();
}

uint32_t id_at(Bytes ids, int width, uint64_t i) {
  uint32_t id = 0;
  std::memcpy(&id, ids.data() + i * static_cast<uint64_t>(width), static_cast<size_t>(width));
  return id;
}

template <class Id>
uint64_t first_outside(const std::byte* ids, uint64_t count, int64_t vocabulary) {
  constexpr uint64_t kBlock = 4096;
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    const uint64_t n = std::min(kBlock, count - begin);
    Id block[kBlock], most = 0;
    std::memcpy(block, ids + begin * sizeof(Id), n * sizeof(Id));
    for (uint64_t i = 0; i < n; ++i) most = std::max(most, block[i]);
    if (most >= vocabulary) return begin + static_cast<uint64_t>(std::find_if(block, block + n, [&](Id id) { return id >= vocabulary; }) - block);
  }
  return count;
}
// Index of the first id that is not below `vocabulary`, or the number of ids.
uint64_t first_outside(Bytes ids, int width, int64_t vocabulary) {
  const uint64_t count = ids.size() / static_cast<uint64_t>(width);
  return width == 2 ? first_outside<uint16_t>(ids.data(), count, vocabulary) : first_outside<uint32_t>(ids.data(), count, vocabulary);
}

void check_size(const TokenHeader& header, uint64_t size, const std::string& where) {
  const uint64_t want = kHeaderBytes + header.count * static_cast<uint64_t>(header.width);
  if (size == want) return;
  const uint64_t other = kHeaderBytes + header.count * static_cast<uint64_t>(6 - header.width);
  throw DamagedError(fmt::format("{}: has {} bytes, its header says {} ({} ids of {} bytes){}; copy or make it again", where, size, want, header.count,
                                 header.width, size == other ? ": the ids have another width than the header says" : size < want ? ": cut off" : ""));
}

void read_extras(const Words& words, Bytes ids, TokenHeader& header, const std::string& where) {
  if (words[kMark] != kMarkValue) {
    if (std::any_of(words.begin() + 3, words.end(), [](uint32_t word) { return word != 0; }))
      throw DamagedError(fmt::format("{}: header words that must be zero are not; copy or make it again", where));
    return;
  }
  std::string stored;
  for (size_t i = 0; i < kHashWords; ++i) stored += fmt::format("{:08x}", words[kHash + i]);
  if (stored != hash_of(words, ids))
    throw DamagedError(fmt::format("{}: its content does not match its hash {}: a byte was altered; copy or make it again", where, stored));
  header.vocabulary = words[kVocabulary];
  header.shard = words[kShard];
  header.last = words[kLast] != 0;
  const uint64_t outside = first_outside(ids, header.width, header.vocabulary);
  if (outside < header.count)
    throw DamagedError(fmt::format("{}: id {} at token {} is outside the file's vocabulary of {}; make it again", where, id_at(ids, header.width, outside), outside,
                                   header.vocabulary));
}

// Header room, then packed ids; becomes a file with write().
class ShardBuffer {
 public:
  explicit ShardBuffer(int64_t vocabulary) : vocabulary_(vocabulary), format_(kFormats[vocabulary > 65536 ? 1 : 0]) {
    if (vocabulary < 1 || vocabulary > INT32_MAX)
      throw UserError(fmt::format("token file: a vocabulary of {}; 1 to {} are allowed", vocabulary, INT32_MAX));
    clear();
  }
  uint64_t count() const { return (content_.size() - kHeaderBytes) / static_cast<uint64_t>(format_.width); }
  void add(std::span<const uint32_t> ids, const std::string& where) {
    for (uint32_t id : ids) {
      if (id >= vocabulary_) throw UserError(fmt::format("{}: token id {} is outside the vocabulary of {}; use the tokenizer that made the ids", where, id, vocabulary_));
      content_.append(reinterpret_cast<const char*>(&id), static_cast<size_t>(format_.width));
    }
  }
  void write(const std::string& path, int64_t shard, bool last) {
    if (count() > kMostTokens) throw UserError(fmt::format("{}: {} tokens, at most {} fit in one file; write more shards", path, count(), kMostTokens));
    Words words{};
    words[0] = format_.magic, words[1] = format_.version, words[2] = static_cast<uint32_t>(count());
    words[kMark] = kMarkValue, words[kVocabulary] = static_cast<uint32_t>(vocabulary_);
    words[kShard] = static_cast<uint32_t>(shard), words[kLast] = last;
    const std::string hash = hash_of(words, as_bytes(content_).subspan(kHeaderBytes));
    for (size_t i = 0; i < kHashWords; ++i) words[kHash + i] = static_cast<uint32_t>(std::stoul(hash.substr(8 * i, 8), nullptr, 16));
    std::memcpy(content_.data(), words.data(), kHeaderBytes);
    write_atomically(path, content_);
    clear();
  }

 private:
  void clear() { content_.assign(kHeaderBytes, '\0'); }
  int64_t vocabulary_;
  TokenFormat format_;
  std::string content_;
};

// Cuts a stream of ids into shards. One full shard waits until it is known whether it is the last.
class ShardWriter {
 public:
  ShardWriter(std::string folder, int64_t vocabulary, uint64_t most, TokenizeResult& result)
      : folder_(std::move(folder)), most_(most), buffer_(vocabulary), result_(result) {}
  void add(std::span<const uint32_t> ids) {
    while (!ids.empty()) {
      if (buffer_.count() == most_) write(false);
      const auto take = static_cast<size_t>(std::min<uint64_t>(ids.size(), most_ - buffer_.count()));
      buffer_.add(ids.first(take), folder_);
      result_.tokens += take;
      ids = ids.subspan(take);
    }
  }
  void finish() { write(true); }

 private:
  void write(bool last) {
    const std::string path = fmt::format("{}/tokens_{:06}.bin", folder_, result_.shards.size());
    buffer_.write(path, static_cast<int64_t>(result_.shards.size()), last);
    result_.shards.push_back(path);
  }
  std::string folder_;
  uint64_t most_;
  ShardBuffer buffer_;
  TokenizeResult& result_;
};

bool plain_ascii(char c) { return c > ' ' && c < 0x7F; }

// How much of `text` to tokenize at once.
size_t chunk_of(std::string_view text) {
  if (text.size() <= kTokenizeChunk) return text.size();
  size_t any = 0;
  for (size_t at = kTokenizeChunk; at > 1; --at) {
    if (text[at - 1] != '\n') continue;
    if (plain_ascii(text[at - 2]) && plain_ascii(text[at])) return at;
    if (any == 0) any = at;
  }
  if (any > 0) return any;
  size_t at = kTokenizeChunk;
  while (at > kTokenizeChunk - 3 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

std::vector<std::string> bin_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".bin" && !it->path().filename().string().starts_with(".")) paths.push_back(it->path().string());
  if (error) throw UserError(fmt::format("{}: {}; check the path and its permissions", folder, error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TokenHeader parse_token_shard(Bytes file, const std::string& where) {
  Words words{};
  if (!file.empty()) std::memcpy(words.data(), file.data(), std::min(file.size(), kHeaderBytes));
  const TokenFormat* format = file.size() < 4 ? nullptr : format_of(words[0]);
  if (!format)
    throw UserError(fmt::format("{}: is no token file: it begins with {}, not with 20240520 or 20240801; make one with `huajin data tokenize`", where, words[0]));
  if (file.size() < kHeaderBytes) throw DamagedError(fmt::format("{}: has {} bytes, a header alone has {}; copy or make it again", where, file.size(), kHeaderBytes));
  if (words[1] != format->version)
    throw DamagedError(fmt::format("{}: version {} with magic {}, {} is allowed; copy or make it again", where, words[1], words[0], format->version));
  if (words[2] > kMostTokens) throw DamagedError(fmt::format("{}: a negative number of tokens; copy or make it again", where));
  TokenHeader header;
  header.width = format->width;
  header.count = words[2];
  check_size(header, file.size(), where);
  read_extras(words, file.subspan(kHeaderBytes), header, where);
  return header;
}

TokenShard::TokenShard(const std::string& path) : file_(path), header_(parse_token_shard(file_.bytes(), path)), ids_(file_.bytes().data() + kHeaderBytes) {}

void TokenShard::require_vocabulary(int64_t vocabulary) const {
  if (header_.vocabulary != 0 && header_.vocabulary != vocabulary)
    throw UserError(fmt::format("{}: was made with a vocabulary of {}, the tokenizer here has {}; use the tokenizer that made the file (data.tokenizer_folder)", path(),
                                header_.vocabulary, vocabulary));
  const uint64_t outside = first_outside(file_.bytes().subspan(kHeaderBytes), header_.width, vocabulary);
  if (outside < size())
    throw UserError(fmt::format("{}: id {} at token {} is outside the vocabulary of {}; use the tokenizer that made the file (data.tokenizer_folder)", path(),
                                (*this)[outside], outside, vocabulary));
}

bool is_token_shard(const std::string& path) {
  std::error_code error;
  if (is_folder(path)) {
    const auto inside = bin_files(path);
    return !inside.empty() && !is_folder(inside.front()) && is_token_shard(inside.front());
  }
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) < 4) return false;
  const FileView file(path);
  uint32_t magic = 0;
  std::memcpy(&magic, file.bytes().data(), 4);
  return format_of(magic) != nullptr;
}

std::vector<TokenShard> open_token_shards(const std::string& path) {
  const std::vector<std::string> paths = is_folder(path) ? bin_files(path) : std::vector<std::string>{path};
  if (paths.empty()) throw UserError(fmt::format("{}: a folder without .bin token files; make them with `huajin data tokenize`", path));
  std::vector<TokenShard> shards;
  for (const std::string& name : paths) shards.emplace_back(name), shards.back().forget();  // checking looked at all of it
  if (!is_folder(path)) return shards;
  const bool ours = std::any_of(shards.begin(), shards.end(), [](const TokenShard& s) { return s.header().shard >= 0; });
  for (size_t i = 0; ours && i < shards.size(); ++i) {
    const TokenHeader& header = shards[i].header();
    if (header.shard != static_cast<int64_t>(i))
      throw DamagedError(fmt::format("{}: shard {} stands where shard {} belongs; bring back the missing file, or keep one set to a folder", paths[i], header.shard, i));
    if (header.last != (i + 1 == shards.size()))
      throw DamagedError(fmt::format("{}: is {}the last shard of its set; bring back the missing files, or keep one set to a folder", paths[i], header.last ? "" : "not "));
  }
  return shards;
}

void write_token_shard(const std::string& path, std::span<const uint32_t> ids, int64_t vocabulary, int64_t shard, bool last) {
  ShardBuffer buffer(vocabulary);
  buffer.add(ids, path);
  buffer.write(path, shard, last);
}

TokenizeResult tokenize_to_shards(const std::vector<std::string>& paths, const Tokenizer& tokenizer, const std::string& out_folder, uint64_t tokens_per_shard,
                                  const std::function<void(uint64_t, uint64_t)>& progress) {
  if (tokens_per_shard < 1 || tokens_per_shard > kMostTokens)
    throw UserError(fmt::format("tokens per shard: {}; 1 to {} are allowed", tokens_per_shard, kMostTokens));
  make_folder(out_folder);
  if (const auto old = bin_files(out_folder); !old.empty()) throw UserError(fmt::format("{}: is there already; delete it or choose another folder", old.front()));
  TokenizeResult result;
  ShardWriter writer(out_folder, tokenizer.vocabulary(), tokens_per_shard, result);
  uint64_t total = 0, done = 0;
  for (const std::string& path : paths) total += file_size(path);
  std::vector<uint32_t> ids;
  const auto encode = [&](std::string_view text) {
    ids.clear();
    tokenizer.encode(text, ids);
    writer.add(ids);
    result.bytes += text.size();
  };
  for (const std::string& path : paths) {
    const FileView file(path);
    std::string_view text = as_text(file.bytes());
    if (text.empty() || (paths.size() > 1 && text.substr(0, 65536).find('\0') != text.npos)) {
      result.skipped.push_back(path);
      continue;
    }
    const bool newline = paths.size() > 1 && text.back() != '\n';
    while (!text.empty()) {
      const size_t size = chunk_of(text);
      encode(text.substr(0, size));
      text.remove_prefix(size);
      done += size;
      if ((done >> 23) != ((done - size) >> 23)) file.forget();
      if (progress) progress(done, total);
    }
    if (newline) encode("\n");
  }
  if (result.bytes == 0) throw UserError(fmt::format("{}: no text in {} files; give files with text", paths.empty() ? out_folder : paths.front(), paths.size()));
  writer.finish();
  return result;
}

}  // namespace huajin
