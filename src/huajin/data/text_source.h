// Text as a source of rows (core/source.h): next-token prediction over one stream of tokens.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "huajin/core/source.h"
#include "huajin/io/token_stream.h"

namespace huajin {

// The stream is cut into pages of `page` tokens, at a phase that is drawn anew each epoch; an epoch is a keyed permutation of its pages, and rows are
// consecutive pieces of that shuffled stream. So a row's length may change at any token, and the next row begins where the last one ended. An epoch is floor((n - 1) / page) pages; what is
// left over at both ends lies elsewhere in the next epoch. Ids are offsets of a row's first input token.
class TextSource : public Source {
 public:
  // UserError if there are not at least page + 1 tokens, or an id is not below `vocabulary`.
  TextSource(TokenStream tokens, int64_t vocabulary, int64_t page, std::string where);
  bool classifies() const override { return false; }
  int64_t size() const override { return pages_ * page_; }
  int64_t classes() const override { return vocabulary_; }
  int64_t units_per_row(int64_t length) const override { return length; }
  // `length` must divide the page.
  Tensor ids(uint64_t seed, int64_t at, int64_t rows, int64_t length) const override;
  Examples load(const Tensor& ids, int64_t length, const Tensor& noise, int64_t draw, bool training) const override;

 private:
  TokenStream tokens_;
  int64_t vocabulary_, page_, pages_;
};

// Every token of `tokens` after `context` is predicted exactly once, each from at least length - stride tokens before it where there are as many.
class TextEvaluation : public EvaluationSet {
 public:
  // `context`: how many leading tokens are only context (the end of the training text); 0: the first token is charged log(vocabulary) nats.
  TextEvaluation(TokenStream tokens, int64_t context, int64_t vocabulary, int64_t length, int64_t stride, int64_t bytes, int64_t rows = 16);
  int64_t batches() const override;
  Examples batch(int64_t i) const override;
  double charged_nats() const override;
  double bytes() const override { return static_cast<double>(bytes_); }

 private:
  TokenStream tokens_;
  int64_t context_, vocabulary_, length_, stride_, bytes_, rows_, windows_;
};

}  // namespace huajin
