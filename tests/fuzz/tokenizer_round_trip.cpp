// Any text through the tokenizers: the same bytes come back, and every id is below the vocabulary.
#include <cstdlib>

#include "huajin/core/errors.h"
#include "huajin/io/tokenizer.h"

namespace {
void round_trip(const huajin::Tokenizer& tokenizer, std::string_view text) {
  std::vector<uint32_t> ids;
  tokenizer.encode(text, ids);
  for (uint32_t id : ids)
    if (id >= tokenizer.vocabulary()) std::abort();
  if (tokenizer.decode(ids) != text) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace huajin;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto fixed = train_bpe("it's the cat's hat, the cat  sat\n\n on 123 mats; caf\xC3\xA9 caf\xC3\xA9s", 300);
  round_trip(*byte_tokenizer(), text);
  round_trip(*fixed, text);
  if (size > 0 && size < 4096) round_trip(*train_bpe(text, 280), text);
  try {
    round_trip(*character_tokenizer(text), text);
  } catch (const UserError&) {  // not UTF-8, or empty
  }
  return 0;
}
