// How one step is executed: cut, load, forward, backward, reduce. Chosen once a run; techniques don't know it. docs/design/execution.md.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "huajin/core/model.h"
#include "huajin/core/technique.h"

namespace huajin {

// The weights of one model as this rank holds them, in the order of Model::number().
struct WeightTable {
  std::unique_ptr<Model> model;
  std::vector<Model::Entry> entries;
  std::vector<Parameter> parameters;  // one an entry, frozen weights and statistics as well
};

struct Evaluated {
  double sum = 0;      // of the data term (nats) over counted items
  double items = 0;    // counted
  double correct = 0;  // predictions whose greatest logit is the target
};

class Execution {
 public:
  virtual ~Execution() = default;
  // One pass over the step's batch: fills Parameter::grad (summed over micro-batches and the data axis, in master precision, every term divided),
  // and of the step: loss, terms, example_loss if it is the first pass. False: not finite somewhere; gradients must not be used.
  virtual bool gradients(Step& step, Pass pass) = 0;
  // All passes of the step were finite: what layers recorded in the first takes effect, and is in step.records. A skipped step changes no statistic.
  virtual void settle(Step&) {}
  // Data term a counted item, forward only: [B, T] or [B], the same on every rank.
  virtual Tensor score(const Batch& batch, const Progress& progress, bool training) = 0;
  // Running statistics become the means of what layers record over these batches, forward only, with the weights as they are.
  virtual void estimate_statistics(std::span<const Batch>, const Progress&) {}
  // Forward only, on loaded examples of this rank; not reduced over ranks.
  virtual Evaluated evaluate(const Examples& examples) = 0;
  // Logits of these inputs; with a cache for generation.
  virtual Tensor logits(const Tensor& inputs, Cache* cache, int64_t position) = 0;
  // The table's tensors were replaced (load, growth): make working copies anew.
  virtual void rebuilt() = 0;
  // State of its own that a resumed run needs (the loss scaler).
  virtual void serialize(Archive&) {}
};

}  // namespace huajin
