// huajin bench tokenizer PATH: how fast a vocabulary is learned from a text and the text is encoded with it, by one thread.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/setup.h"
#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/io/text_read.h"
#include "huajin/io/tokenizer.h"

namespace huajin {

int bench_tokenizer(const CommandLine& line, const std::string& path) {
  if (line.vocabulary < 257 || line.vocabulary > 65536)
    throw UserError("--vocabulary " + std::to_string(line.vocabulary) + ": must be at least 257 and at most 65536");
  const Corpus corpus = read_corpus(path);
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  double learn = 1e300, encode = 1e300;
  std::vector<uint32_t> ids;
  for (int64_t i = 0; i < line.steps; ++i) {  // the best of them: what other processes took is no property of the tokenizer
    const double began = now();
    const auto tokenizer = train_bpe(corpus.text, line.vocabulary);
    const double learned = now();
    ids.clear();
    tokenizer->encode(corpus.text, ids);  // a tokenizer that was just made remembers no word
    learn = std::min(learn, learned - began), encode = std::min(encode, now() - learned);
  }
  const double megabytes = static_cast<double>(corpus.text.size()) / 1e6;
  const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
  if (line.json)
    fmt::print("{}\n", json_text(Json{{"bytes", corpus.text.size()},
                                      {"vocabulary", line.vocabulary},
                                      {"tokens", ids.size()},
                                      {"learn_s", rounded(learn)},
                                      {"learn_mb_per_s", rounded(megabytes / learn)},
                                      {"encode_s", rounded(encode)},
                                      {"encode_mb_per_s", rounded(megabytes / encode)},
                                      {"peak_rss_mb", std::round(peak_rss_mb())}}));
  else
    fmt::print("bpe of {}: learned from {:.1f} MB in {:.3f} s ({:.1f} MB/s), encoded in {:.3f} s ({:.1f} MB/s) to {} tokens\n", line.vocabulary, megabytes, learn,
               megabytes / learn, encode, megabytes / encode, ids.size());
  return kExitOk;
}

}  // namespace huajin
