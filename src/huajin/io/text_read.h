// A text corpus: one file, or every text file below a folder in order of names.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace huajin {

struct Corpus {
  std::string text;                  // all files, one after the other, a newline between where one does not end in one
  std::vector<std::string> files;    // read
  std::vector<std::string> skipped;  // binary or empty ones in a folder
};

// UserError: no such path, not readable, an empty file, a folder without text files, more than `most` bytes. A file with NUL bytes counts as binary:
// in a folder it is skipped, alone it is read (raw bytes are a corpus too).
Corpus read_corpus(const std::string& path, uint64_t most = uint64_t{4} << 30);
// Only files of these endings (".h"); at most `most` bytes, whole files.
Corpus read_corpus_of(const std::string& folder, const std::vector<std::string>& endings, uint64_t most);

// Where the validation part of one text begins: nine tenths, moved to the next line's start if one is near, so that no line is torn.
size_t last_tenth(std::string_view text);

}  // namespace huajin
