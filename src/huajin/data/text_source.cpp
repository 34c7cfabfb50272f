#include "huajin/data/text_source.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {

TextSource::TextSource(TokenStream tokens, int64_t vocabulary, int64_t page, std::string where)
    : tokens_(std::move(tokens)), vocabulary_(vocabulary), page_(page), pages_((static_cast<int64_t>(tokens_.size()) - 1) / page) {
  if (static_cast<int64_t>(tokens_.size()) < page + 1)
    throw UserError(fmt::format("{}: {} tokens to train on, fewer than batch.length + 1 = {}; give more text or a smaller batch.length", where, tokens_.size(), page + 1));
  const uint32_t most = tokens_.greatest();
  if (most >= vocabulary) throw UserError(fmt::format("{}: token id {} is outside the vocabulary of {}; use the tokenizer that made the tokens", where, most, vocabulary));
}

Tensor TextSource::ids(uint64_t seed, int64_t at, int64_t rows, int64_t length) const {
  if (length < 1 || page_ % length != 0)
    throw UserError(fmt::format("batch.length: a row of {} tokens does not divide the page of {}; use lengths that divide the longest", length, page_));
  const auto spare = static_cast<uint64_t>(static_cast<int64_t>(tokens_.size()) - 1 - pages_ * page_ + 1);  // phases that leave room for all pages
  // Where lengths change, the next row of the new length begins: no row reaches into another page, which lies elsewhere in the epoch's order.
  const int64_t start = (at + length - 1) / length * length;
  Tensor out = at::empty({rows}, at::kLong);
  auto* to = out.mutable_data_ptr<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t position = start + r * length, epoch = position / size(), within = position % size();
    const uint64_t key = mix(seed, static_cast<uint64_t>(Purpose::kOrder), static_cast<uint64_t>(epoch));
    const auto page = static_cast<int64_t>(permuted(key, static_cast<uint64_t>(within / page_), static_cast<uint64_t>(pages_)));
    to[r] = static_cast<int64_t>(below(key, 0, spare)) + page * page_ + within % page_;
  }
  return out;
}

Examples TextSource::load(const Tensor& ids, int64_t length, const Tensor&, int64_t, bool) const {
  const int64_t rows = ids.numel();
  const Tensor index = ids.contiguous();
  const auto* from = index.const_data_ptr<int64_t>();
  Examples e;
  e.inputs = at::empty({rows, length}, at::kLong);
  e.targets = at::empty({rows, length}, at::kLong);
  auto* x = e.inputs.mutable_data_ptr<int64_t>();
  auto* y = e.targets.mutable_data_ptr<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    if (from[r] < 0 || from[r] + length >= static_cast<int64_t>(tokens_.size())) throw Error(kExitInternal, fmt::format("text: row {} lies outside the text", from[r]));
    tokens_.copy(static_cast<uint64_t>(from[r]), static_cast<uint64_t>(length), x + r * length);
    tokens_.copy(static_cast<uint64_t>(from[r]) + 1, static_cast<uint64_t>(length), y + r * length);
  }
  e.index.id = ids;
  e.index.length = length;
  return e;
}

TextEvaluation::TextEvaluation(TokenStream tokens, int64_t context, int64_t vocabulary, int64_t length, int64_t stride, int64_t bytes, int64_t rows)
    : tokens_(std::move(tokens)), context_(context), vocabulary_(vocabulary), length_(length), stride_(std::clamp<int64_t>(stride, 1, length)), bytes_(bytes), rows_(rows) {
  const int64_t first = std::max<int64_t>(context_, 1), targets = static_cast<int64_t>(tokens_.size()) - first;
  if (targets < 1) throw UserError(fmt::format("validation text: {} tokens, too few to predict one; give more text or a --val file", tokens_.size() - context_));
  windows_ = (targets + stride_ - 1) / stride_;
}

int64_t TextEvaluation::batches() const { return (windows_ + rows_ - 1) / rows_; }

double TextEvaluation::charged_nats() const { return context_ == 0 ? std::log(static_cast<double>(vocabulary_)) : 0; }

// Window w counts targets [first + w stride, first + (w+1) stride); its inputs are the `length` tokens that end with them.
Examples TextEvaluation::batch(int64_t i) const {
  const int64_t begin = i * rows_, rows = std::min(rows_, windows_ - begin), first = std::max<int64_t>(context_, 1), n = static_cast<int64_t>(tokens_.size());
  Examples e;
  e.inputs = at::zeros({rows, length_}, at::kLong);
  e.targets = at::zeros({rows, length_}, at::kLong);
  e.mask = at::zeros({rows, length_}, at::kFloat);
  e.index.id = at::empty({rows}, at::kLong);
  e.index.length = length_;
  auto* x = e.inputs.mutable_data_ptr<int64_t>();
  auto* y = e.targets.mutable_data_ptr<int64_t>();
  auto* mask = e.mask.mutable_data_ptr<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t counted = first + (begin + r) * stride_, end = std::min(counted + stride_, n);  // targets
    const int64_t start = std::max<int64_t>(0, end - length_ - 1);                                // first input; short texts leave the row's end unused
    e.index.id.mutable_data_ptr<int64_t>()[r] = start;
    const int64_t used = std::clamp<int64_t>(end - start - 1, 0, length_);
    tokens_.copy(static_cast<uint64_t>(start), static_cast<uint64_t>(used), x + r * length_);
    tokens_.copy(static_cast<uint64_t>(start) + 1, static_cast<uint64_t>(used), y + r * length_);
    for (int64_t t = 0; t < used; ++t)
      if (start + t + 1 >= counted) mask[r * length_ + t] = 1;
  }
  return e;
}

}  // namespace huajin
