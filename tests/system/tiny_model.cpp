#include "tiny_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/rng.h"
#include "huajin/optim/averaging/ema/ema.h"
#include "huajin/optim/large_batch/clip/clip.h"
#include "huajin/optim/learning_rate/adamw/adamw.h"
#include "huajin/optim/learning_rate/constant/constant.h"
#include "huajin/optim/learning_rate/sgd/sgd.h"
#include "huajin/optim/objective/sam/sam.h"

namespace huajin {
namespace {

struct Embedding : Layer {
  Weight weight{this, "weight", {kTinyVocabulary, kTinyWidth}, {.init = normal(0.5), .role = Role::kEmbedding}};
  Tensor forward(Forward& f, const Tensor& x) const override { return f.rows(weight, x); }
};
struct Block : Layer {
  explicit Block(double p) : drop(p) {}
  Weight weight{this, "weight", {kTinyWidth, kTinyWidth}, {.init = normal(0.5)}};
  Weight bias{this, "bias", {kTinyWidth}, {.init = uniform(0.1), .role = Role::kBias}};
  double drop;
  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor y = f.dropout(at::tanh(at::linear(x, f[weight], f[bias])), drop, *this, 0, false);
    f.add("square", y.pow(2).sum(), 0.01);
    return x + y;
  }
};
struct Head : Layer {
  Weight weight{this, "weight", {kTinyVocabulary, kTinyWidth}, {.role = Role::kHead}};
  Weight bias{this, "bias", {kTinyVocabulary}, {.role = Role::kBias}};
  Tensor forward(Forward& f, const Tensor& x) const override { return at::linear(x, f[weight], f[bias]); }
};

}  // namespace

std::unique_ptr<Model> tiny_model(int blocks, double dropout) {
  auto m = std::make_unique<Model>();
  m->add("embedding", make<Embedding>());
  for (int b = 0; b < blocks; ++b) m->add("block." + std::to_string(b), make<Block>(dropout));
  m->add("head", make<Head>());
  m->tie("head.weight", "embedding.weight");
  m->context = TinySource::kLength;
  return m;
}

Tensor TinySource::ids(uint64_t, int64_t at, int64_t rows, int64_t length) const { return at::arange(rows, at::kLong) * length + at; }

Examples TinySource::load(const Tensor& ids, int64_t length, const Tensor&, int64_t, bool) const {
  Examples e;
  const int64_t rows = ids.numel();
  e.inputs = at::empty({rows, length}, at::kLong);
  e.targets = at::empty({rows, length}, at::kLong);
  e.mask = at::zeros({rows, length}, at::kDouble);
  const Tensor list = ids.contiguous();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t id = list.const_data_ptr<int64_t>()[r], counted = counts_[static_cast<size_t>(id / length) % counts_.size()];
    for (int64_t t = 0; t < length; ++t) {
      e.inputs.mutable_data_ptr<int64_t>()[r * length + t] = static_cast<int64_t>(below(7, static_cast<uint64_t>(id + t), kTinyVocabulary));
      e.targets.mutable_data_ptr<int64_t>()[r * length + t] = static_cast<int64_t>(below(7, static_cast<uint64_t>(id + t + 1), kTinyVocabulary));
      if (t < counted) e.mask.mutable_data_ptr<double>()[r * length + t] = 1;
    }
  }
  e.index.id = ids;
  return e;
}

std::vector<std::unique_ptr<Technique>> adamw_and_clip() {
  std::vector<std::unique_ptr<Technique>> t;
  t.push_back(std::make_unique<Clip>(ClipConfig{.norm = 0.5}));
  t.push_back(std::make_unique<Adamw>(AdamwConfig{.learning_rate = 0.01}));
  t.push_back(std::make_unique<ConstantSchedule>(ConstantScheduleConfig{}));
  return t;
}
std::vector<std::unique_ptr<Technique>> sgd_and_clip() {
  std::vector<std::unique_ptr<Technique>> t;
  t.push_back(std::make_unique<Clip>(ClipConfig{.norm = 0.5}));
  t.push_back(std::make_unique<Sgd>(SgdConfig{.learning_rate = 0.1}));
  t.push_back(std::make_unique<ConstantSchedule>(ConstantScheduleConfig{}));
  return t;
}
std::vector<std::unique_ptr<Technique>> sam_ema_adamw_and_clip() {
  std::vector<std::unique_ptr<Technique>> t = adamw_and_clip();
  t.insert(t.begin(), std::make_unique<Sam>(SamConfig{}));
  t.insert(t.begin(), std::make_unique<Ema>(EmaConfig{}));
  return t;
}

TinyOutcome train_tiny(TinyRun run, std::shared_ptr<Communicator> communicator, const std::function<void(RunSession&)>& finished) {
  RunSession session(tiny_model(run.blocks), std::make_shared<TinySource>(run.counts), std::move(run.techniques), std::move(communicator), run.options);
  session.build();
  Limits limits;
  limits.steps = static_cast<double>(run.steps);
  Trainer trainer(session, {.limits = limits, .rows = run.rows, .length = TinySource::kLength}, nullptr, nullptr);
  TinyOutcome outcome;
  for (int64_t i = 0; i < run.steps; ++i) {
    trainer.step();
    outcome.losses.push_back(trainer.last_loss());
    outcome.norms.push_back(trainer.last_norm());
  }
  for (auto& p : session.table().parameters) outcome.weights.push_back(p.value.to(at::kDouble).clone());
  if (finished) finished(session);
  return outcome;
}

TinyDifference difference(const TinyOutcome& a, const TinyOutcome& b) {
  TinyDifference d;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    d.loss = std::max(d.loss, std::abs(a.losses[i] - b.losses.at(i)));
    d.norm = std::max(d.norm, std::abs(a.norms[i] - b.norms.at(i)));
  }
  for (size_t i = 0; i < a.weights.size(); ++i) d.weights = std::max(d.weights, (a.weights[i] - b.weights.at(i)).abs().max().item().toDouble());
  return d;
}

}  // namespace huajin
