// How a model is written. A layer declares its weights once (name, logical shape, initialisation, placement) and computes from
// what the engine hands it; it never holds a value. So one model serves any number of sets of values (working copies, an
// average, a teacher) in any cut and precision. docs/design/models.md says why not torch::nn::Module.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace huajin {
using at::Tensor;
using Flow = std::vector<Tensor>;  // what crosses from block to block; its first is the main stream
class Layer;
class Forward;

struct Init {
  enum Kind { kZeros, kOnes, kNormal, kUniform, kOrthogonal } kind = kZeros;
  double scale = 0;  // standard deviation, half width, or gain
};
inline Init zeros() { return {Init::kZeros, 0}; }
inline Init ones() { return {Init::kOnes, 1}; }
inline Init normal(double deviation) { return {Init::kNormal, deviation}; }
inline Init uniform(double bound) { return {Init::kUniform, bound}; }
inline Init orthogonal(double gain) { return {Init::kOrthogonal, gain}; }

enum class Role { kHidden, kEmbedding, kHead, kNorm, kBias, kStatistic };  // decay and Muon's split follow from it

struct WeightOptions {
  Init init{};
  Role role = Role::kHidden;
  int cut = -1;                 // dimension cut over the tensor axis; -1: whole on each rank
  int parts = 1;                // fused matrices: each of so many equal parts of `cut` is cut by itself (GPT-2's c_attn: 3)
  bool partial = false;         // whole, but applied to a cut activation: the engine sums its gradient over the tensor axis
  bool keep_precision = false;  // working copy stays in master precision (norms, routers)
  bool trainable = true;
  double momentum = 0;  // > 0: a statistic; changed by Forward::record, never by a gradient
  Tensor own{};         // adapters: the tensor the engine publishes into, because foreign code reads it as a member
};

class Weight {  // a declaration, not a tensor: f[weight] is the tensor
 public:
  Weight(Layer* owner, std::string name, std::vector<int64_t> shape, WeightOptions options = {});
  Weight(const Weight&) = delete;
  std::string name;            // within its layer, Hugging Face spelling
  std::vector<int64_t> shape;  // logical
  WeightOptions options;
  int id = -1;  // position in the table; tied weights share it
};

class PartBase;
class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  virtual ~Layer() = default;
  virtual Tensor forward(Forward& f, const Tensor& x) const = 0;
  // Override where a block passes on more than one tensor (encoder and decoder, skips).
  virtual Flow flow(Forward& f, Flow x) const {
    x[0] = forward(f, x[0]);
    return x;
  }
  // Multiply-adds x 2 of one row's forward pass beyond the matrix products of its weights (attention scores); length or pixels as given.
  virtual double extra_flops(int64_t length) const { return 0; }
  std::vector<Weight*> weights;   // in order of declaration
  std::vector<PartBase*> parts;
  int number = -1;  // keys random numbers
};

class PartBase {  // a named place in a layer; surgery changes what stands in it
 public:
  PartBase(Layer* owner, std::string n, std::unique_ptr<Layer> l) : name(std::move(n)), layer(std::move(l)) { owner->parts.push_back(this); }
  PartBase(const PartBase&) = delete;
  virtual ~PartBase() = default;
  Tensor operator()(Forward& f, const Tensor& x) const { return layer->forward(f, x); }
  std::string name;  // "" adds nothing to the path, "self_attn.q_proj" adds two steps
  std::unique_ptr<Layer> layer;
};
template <class T = Layer>
class Part : public PartBase {
 public:
  Part(Layer* owner, std::string n, std::unique_ptr<T> l) : PartBase(owner, std::move(n), std::move(l)) {}
  T* operator->() const { return static_cast<T*>(layer.get()); }  // layers with another signature than forward(f, x)
};
template <class T, class... A>
std::unique_ptr<T> make(A&&... a) {
  return std::make_unique<T>(std::forward<A>(a)...);
}

// Keys and values of earlier tokens, for generation: a layer appends its own and gets all so far.
class Cache {
 public:
  virtual ~Cache() = default;
  // k, v [B, G, t, K] of the new tokens -> all tokens so far, [B, G, position + t, K].
  virtual std::pair<Tensor, Tensor> append(const Layer& where, const Tensor& k, const Tensor& v) = 0;
};

// What a layer sees of the step. The engine makes one for each micro-batch and again for its recomputation.
class Forward {
 public:
  virtual ~Forward() = default;
  const Tensor& operator[](const Weight& w) const { return table[w.id]; }
  const Tensor* table = nullptr;
  bool training = true;
  at::ScalarType dtype = at::kFloat;  // of activations between layers
  int rank = 0, ranks = 1;            // on the tensor axis
  bool recomputing = false;           // inside backward; a layer needs it only if it has state of its own
  Tensor items;              // where rows were dispatched (experts, dropped tokens): [n] their index in [B T], for keyed noise
  Cache* cache = nullptr;    // set while generating
  int64_t position = 0;      // of the first token of x in its sequence (0 unless generating)
  // Rows of a table: [..., D] of the activations' precision. Not at::embedding: the engine adds the gradient's rows into the table's gradient
  // where they belong, instead of making a second full-size one.
  virtual Tensor rows(const Weight& table_weight, const Tensor& ids) = 0;
  virtual Tensor enter(const Tensor& x) = 0;  // whole -> used by cut weights: identity, its gradient is summed over the axis,
                                              // once for the same x (q, k and v enter together)
  virtual Tensor leave(const Tensor& x) = 0;  // partial -> whole: summed over the axis, its gradient passes
  // Keyed by (seed, layer, purpose, draw, row, global element). `cut`: the last dimension is cut over the tensor axis.
  virtual Tensor dropout(const Tensor& x, double p, const Layer& where, int purpose, bool cut) = 0;
  virtual void add(std::string_view name, const Tensor& term, double scale) = 0;       // auxiliary loss, a sum over items
  virtual void record(const Weight& statistic, const Tensor& mean, double count) = 0;  // averaged over micro-batches and ranks
};

class Model {  // blocks in order; a pipeline stage, a ZeRO-3 unit, a recomputed segment is a range of them. The last is the head.
 public:
  struct Block {
    std::string name;  // prefix of its weights' names; may be ""
    std::unique_ptr<Layer> layer;
  };
  std::vector<Block> blocks;
  // What it is, for the checkpoint's config.json and for `plan`: Hugging Face's config as JSON text, "" where it has none.
  std::string config_json;
  int64_t context = 0;  // longest sequence, 0: not a sequence model
  void add(std::string name, std::unique_ptr<Layer> layer) { blocks.push_back({std::move(name), std::move(layer)}); }
  void tie(std::string name, std::string to) { ties_.emplace_back(std::move(name), std::move(to)); }
  const std::vector<std::pair<std::string, std::string>>& ties() const { return ties_; }

  struct Entry {
    std::string name;
    Weight* weight;           // the first of those that are tied
    std::vector<int> blocks;  // that use it
  };
  std::vector<Entry> number();  // after building and after surgery: assigns ids, resolves ties. Throws UserError on a name twice or a tie to nothing
  // Every part whose path matches ("model.layers.*.mlp"); how many were found.
  int replace(std::string_view pattern, const std::function<std::unique_ptr<Layer>(std::unique_ptr<Layer>)>& surgery);
  int freeze(std::string_view pattern);
  double flops_per_row(int64_t length) const;  // forward pass of one row: 2 x weights x positions + extra_flops

 private:
  std::vector<std::pair<std::string, std::string>> ties_;
};

}  // namespace huajin
