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

// The files of a corpus, in order: `path` itself, or those below it. UserError: no such path, a folder without files.
std::vector<std::string> corpus_files(const std::string& path);
// All text of `files` if it has at most `most` bytes, else pieces of a MiB at equal distances that come to about as many: enough to learn a vocabulary from.
// Memory: `most`. Binary files among several are left out.
std::string corpus_sample(const std::vector<std::string>& files, uint64_t most);

// Where the validation part of one text begins: nine tenths, moved to the next line's start if one is near, so that no line is torn.
size_t last_tenth(std::string_view text);

}  // namespace huajin
