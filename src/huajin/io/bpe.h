// Byte-level byte-pair encoding: the merges, how a word is encoded with them, and how they are learned.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "huajin/io/tokenizer.h"

namespace huajin {

// Which two tokens become which; earlier merges first.
class MergeTable {
 public:
  struct Merge {
    uint32_t left, right, result;
  };
  MergeTable() = default;
  explicit MergeTable(const std::vector<Merge>& merges);
  // Rank of the merge of two neighbours, -1: none.
  int64_t rank(uint32_t left, uint32_t right) const;
  uint32_t result(int64_t rank) const { return results_[static_cast<size_t>(rank)]; }

 private:
  std::vector<uint64_t> keys_;   // open addressing; key + 1, 0: empty
  std::vector<int32_t> ranks_;
  std::vector<uint32_t> results_;
  uint64_t mask_ = 0;
};

class BpeTokenizer : public Tokenizer {
 public:
  // tokens[id]: its bytes; byte_ids[b]: the id of byte b. Tokens in `special` never come from text (their bytes are what decode prints).
  BpeTokenizer(std::string kind, std::vector<std::string> tokens, std::vector<uint32_t> byte_ids, std::vector<MergeTable::Merge> merges, std::set<uint32_t> special,
               size_t longest_word);
  std::string_view kind() const override { return kind_; }
  int64_t vocabulary() const override { return static_cast<int64_t>(tokens_.size()); }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override;
  std::string bytes_of(uint32_t id) const override;
  std::vector<std::pair<std::string, std::string>> files() const override;
  const std::vector<MergeTable::Merge>& merges() const { return merges_; }

 private:
  void encode_word(std::string_view word, std::vector<uint32_t>& ids) const;
  void encode_short_word(std::string_view word, std::vector<uint32_t>& ids) const;
  void encode_long_word(std::string_view word, std::vector<uint32_t>& ids) const;
  std::string kind_;
  std::vector<std::string> tokens_;
  std::vector<uint32_t> byte_ids_;
  std::vector<MergeTable::Merge> merges_;
  MergeTable table_;
  std::set<uint32_t> special_;
  size_t longest_word_;
  std::vector<int32_t> byte_ranks_;  // [256, 256] of two bytes, -1: they don't merge
  uint64_t number_;                  // no other tokenizer of this process has it
};

// Merges of two token ids (bytes are ids 0 to 255), most frequent first.
std::vector<MergeTable::Merge> learn_merges(std::string_view text, int64_t vocabulary, size_t longest_word);

// GPT-2's printable stand-ins for bytes: UTF-8 of one character a byte, and back. DamagedError naming `where` for a character that stands for no byte.
std::string bytes_to_printable(std::string_view bytes);
std::string printable_to_bytes(std::string_view text, const std::string& where);

constexpr size_t kLongestWord = 256;  // of huajin's own BPE: a file of one character stays bounded in time and memory

}  // namespace huajin
