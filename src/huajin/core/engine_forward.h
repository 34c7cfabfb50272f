// What the engine hands to layers for one micro-batch (core/model.h). docs/design/execution.md.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "huajin/core/model.h"

namespace huajin {

// Where gradients of table rows go: added in place, so that a large embedding never has a second full-size gradient.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // grads [n, D] of rows ids [n] of weight `id`.
  virtual void add_rows(int id, const Tensor& ids, const Tensor& grads) = 0;
};

class EngineForward : public Forward {
 public:
  struct Added {
    std::string name;
    Tensor term;
    double scale;
  };
  struct Recorded {
    int id;  // of the statistic
    Tensor mean;
    double count;
  };

  uint64_t noise_key = 0;             // (seed, draw, pass)
  std::vector<uint64_t> row_streams;  // of the micro-batch's rows
  int64_t row_items = 0;              // rows x length of the micro-batch: coordinates of dispatched rows
  GradientSink* sink = nullptr;
  std::vector<Added> added;        // of the block in hand, with its graph
  std::vector<Recorded> recorded;  // whole pass

  Tensor rows(const Weight& table_weight, const Tensor& ids) override;
  Tensor enter(const Tensor& x) override { return x; }  // one rank on the tensor axis
  Tensor leave(const Tensor& x) override { return x; }
  Tensor dropout(const Tensor& x, double p, const Layer& where, int purpose, bool cut) override;
  void add(std::string_view name, const Tensor& term, double scale) override;
  void record(const Weight& statistic, const Tensor& mean, double count) override;
};

}  // namespace huajin
