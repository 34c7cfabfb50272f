#include "huajin/io/text_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "huajin/core/errors.h"
#include "huajin/io/file.h"

namespace huajin {
namespace {

namespace fs = std::filesystem;

bool is_binary(std::string_view text) { return text.substr(0, 65536).find('\0') != text.npos; }

void append(Corpus& corpus, const std::string& path, std::string_view text) {
  corpus.text += text;
  if (!text.empty() && text.back() != '\n') corpus.text += '\n';
  corpus.files.push_back(path);
}

std::vector<std::string> files_below(const std::string& folder, const std::vector<std::string>& endings) {
  std::vector<std::string> paths;
  std::error_code error;
  std::string last = folder;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    last = it->path().string();
    if (!it->is_regular_file(error) || it->path().filename().string().starts_with(".")) continue;
    const std::string name = it->path().string();
    if (endings.empty() || std::any_of(endings.begin(), endings.end(), [&](const std::string& e) { return name.ends_with(e); })) paths.push_back(name);
  }
  if (error) throw UserError(fmt::format("{}: {}, at {}; check its permissions, or leave it out", folder, error.message(), last));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Corpus read_corpus(const std::string& path, uint64_t most) {
  Corpus corpus;
  if (!exists(path)) throw UserError(fmt::format("{}: no such file or folder; check --data", path));
  if (!is_folder(path)) {
    corpus.text = read_file(path, most);
    if (corpus.text.empty()) throw UserError(fmt::format("{}: the file is empty; give one with text", path));
    corpus.files.push_back(path);
    return corpus;
  }
  for (auto& file : files_below(path, {})) {
    const std::string text = read_file(file, most);
    if (text.empty() || is_binary(text)) {
      corpus.skipped.push_back(file);
      continue;
    }
    if (corpus.text.size() + text.size() > most) throw UserError(fmt::format("{}: more than {} bytes of text; give a part of it, or tokenize it with `huajin data tokenize`", path, most));
    append(corpus, file, text);
  }
  if (corpus.files.empty())
    throw UserError(fmt::format("{}: a folder without text files ({} empty or binary ones); give a text file, or a folder that holds some", path, corpus.skipped.size()));
  return corpus;
}

Corpus read_corpus_of(const std::string& folder, const std::vector<std::string>& endings, uint64_t most) {
  Corpus corpus;
  for (auto& file : files_below(folder, endings)) {
    const std::string text = read_file(file, most);
    if (corpus.text.size() + text.size() > most) break;
    if (text.empty() || is_binary(text)) corpus.skipped.push_back(file);
    else append(corpus, file, text);
  }
  if (corpus.files.empty()) throw UserError(fmt::format("{}: no files of the wanted kind", folder));
  return corpus;
}

std::vector<std::string> corpus_files(const std::string& path) {
  if (!exists(path)) throw UserError(fmt::format("{}: no such file or folder; check --data", path));
  if (!is_folder(path)) return {path};
  std::vector<std::string> files = files_below(path, {});
  if (files.empty()) throw UserError(fmt::format("{}: a folder without files; give a text file, or a folder that holds some", path));
  return files;
}

std::string corpus_sample(const std::vector<std::string>& files, uint64_t most) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  uint64_t total = 0, at = 0, next = 0;
  for (auto& file : files) total += file_size(file);
  const uint64_t step = total / std::max<uint64_t>(1, most / kPiece) + 1;
  std::string text;
  text.reserve(std::min(total + files.size(), most + 2 * kPiece));
  for (auto& path : files) {
    const FileView file(path);
    const std::string_view all = as_text(file.bytes());
    const uint64_t end = at + all.size();
    if (files.size() == 1 || !is_binary(all)) {
      if (total <= most) text += all, text += files.size() > 1 && !all.empty() && all.back() != '\n' ? "\n" : "";
      else
        for (next = std::max(next, at); next < end; next += step) text += all.substr(next - at, kPiece), file.forget();
    }
    at = end;
  }
  return text;
}

size_t last_tenth(std::string_view text) {
  const size_t at = text.size() / 10 * 9 + text.size() % 10 * 9 / 10;
  const size_t line = text.find('\n', at);
  return line != text.npos && line - at < 200 && line + 1 < text.size() ? line + 1 : at;
}

}  // namespace huajin
