// Text to token ids and back. Every kind turns any text that it can encode back into the same bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace huajin {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string_view kind() const = 0;  // bytes | characters | bpe | gpt2
  virtual int64_t vocabulary() const = 0;
  // Appends the ids of `text`. UserError where a character is unknown (characters), naming it and its byte offset. Thread-safe.
  virtual void encode(std::string_view text, std::vector<uint32_t>& ids) const = 0;
  virtual std::string bytes_of(uint32_t id) const = 0;  // UserError for an id outside the vocabulary
  std::string decode(std::span<const uint32_t> ids) const;
  // Content of Hugging Face's files (tokenizer.json, tokenizer_config.json and, where it helps, vocab.json): name and content.
  virtual std::vector<std::pair<std::string, std::string>> files() const = 0;
};

std::unique_ptr<Tokenizer> byte_tokenizer();
// One token a code point that occurs in `text`, in order of code point. UserError with the byte offset for invalid UTF-8.
std::unique_ptr<Tokenizer> character_tokenizer(std::string_view text);
// The same of all files, of which a few MiB are in memory at a time.
std::unique_ptr<Tokenizer> character_tokenizer(const std::vector<std::string>& files);
// Byte-level BPE (Gage, 1994; Sennrich et al., 2016; Radford et al., 2019) with `vocabulary` tokens of which 256 are the bytes; fewer if the text has no more
// pairs. Deterministic: the most frequent pair first, of equals the one that is smaller in ids. Bounded memory: words longer than 256 bytes are cut.
std::unique_ptr<Tokenizer> train_bpe(std::string_view text, int64_t vocabulary);
// GPT-2's encoder.json and vocab.bpe in `folder`. UserError if they are missing, DamagedError if they contradict each other.
std::unique_ptr<Tokenizer> gpt2_tokenizer(const std::string& folder);
// From a folder that files() were written to. DamagedError, UserError.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder);

}  // namespace huajin
