// Where examples come from: random access by id, so that order, cutting and mixing are decided on ids alone.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "huajin/core/technique.h"

namespace huajin {

class Source {
 public:
  virtual ~Source() = default;
  virtual bool classifies() const = 0;     // one label a row; else one target a token
  virtual int64_t size() const = 0;        // units of the split: examples, or tokens
  virtual int64_t classes() const = 0;     // labels, or vocabulary
  // Ids of the next `rows` rows from absolute position `at` (in units: examples, or tokens for text) of the endless shuffled stream. Pure: depends
  // on (seed, at, rows, length) only. Every unit comes exactly once an epoch; two epochs differ.
  virtual Tensor ids(uint64_t seed, int64_t at, int64_t rows, int64_t length) const = 0;
  virtual int64_t units_per_row(int64_t length) const = 0;  // 1, or length
  // inputs, targets and mask of these ids (any order, any repetition). Thread-safe. `noise` [b] and `draw` key augmentation; training = false: none.
  virtual Examples load(const Tensor& ids, int64_t length, const Tensor& noise, int64_t draw, bool training) const = 0;
  // For bits per byte: bytes that the targets of the whole split stand for; 0 where it has no meaning.
  virtual int64_t bytes() const { return 0; }
};

// The validation split, cut into batches that together predict every item exactly once. Random access, so that several ranks share it and an
// evaluation may stop early when the deadline nears.
class EvaluationSet {
 public:
  virtual ~EvaluationSet() = default;
  virtual int64_t batches() const = 0;
  virtual Examples batch(int64_t i) const = 0;          // Examples::mask marks what counts
  virtual double charged_nats() const { return 0; }     // for items that no batch predicts (the first token of a text)
  virtual double bytes() const { return 0; }            // that all items stand for: bits per byte = nats / (bytes ln 2); 0: no meaning
};

}  // namespace huajin
