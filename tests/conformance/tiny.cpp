#include "tiny.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "huajin/core/checkpoint.h"
#include "huajin/core/communicator.h"
#include "huajin/core/keyed.h"
#include "huajin/core/registry.h"
#include "huajin/core/rng.h"
#include "huajin/zoo/llama.h"

namespace huajin {
namespace {

constexpr int64_t kVocabulary = 13, kLength = 6, kFeatures = 8, kClasses = 5;

// Tokens that mostly follow from the one before; the last 0, 1 or 2 targets of a row don't count.
class TinyText : public Source {
 public:
  bool classifies() const override { return false; }
  int64_t size() const override { return 1 << 20; }
  int64_t classes() const override { return kVocabulary; }
  int64_t units_per_row(int64_t length) const override { return length; }
  Tensor ids(uint64_t, int64_t at, int64_t rows, int64_t length) const override { return at::arange(rows, at::kLong) * length + at; }
  Examples load(const Tensor& ids, int64_t length, const Tensor&, int64_t, bool) const override {
    Examples e;
    const int64_t rows = ids.numel();
    e.inputs = at::empty({rows, length}, at::kLong);
    e.targets = at::empty({rows, length}, at::kLong);
    e.mask = at::empty({rows, length}, at::kDouble);
    const Tensor flat = ids.contiguous();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t t = 0; t < length; ++t) {
        const int64_t start = flat.const_data_ptr<int64_t>()[r];
        e.inputs.mutable_data_ptr<int64_t>()[r * length + t] = token(start + t);
        e.targets.mutable_data_ptr<int64_t>()[r * length + t] = token(start + t + 1);
        e.mask.mutable_data_ptr<double>()[r * length + t] = t < length - start / length % 3;
      }
    e.index.id = ids;
    return e;
  }

 private:
  static int64_t token(int64_t i) {
    const int64_t phrase = i % 4 == 0 ? static_cast<int64_t>(below(5, static_cast<uint64_t>(i), kVocabulary)) : (token(i - 1) * 5 + 3) % kVocabulary;
    return phrase;
  }
};

// Vectors around one centre a class.
class TinyVectors : public Source {
 public:
  bool classifies() const override { return true; }
  int64_t size() const override { return 512; }
  int64_t classes() const override { return kClasses; }
  int64_t units_per_row(int64_t) const override { return 1; }
  Tensor ids(uint64_t seed, int64_t at, int64_t rows, int64_t) const override {
    Tensor ids = at::empty({rows}, at::kLong);
    for (int64_t r = 0; r < rows; ++r)
      ids.mutable_data_ptr<int64_t>()[r] =
          static_cast<int64_t>(permuted(mix(seed, static_cast<uint64_t>((at + r) / size())), static_cast<uint64_t>((at + r) % size()), 512));
    return ids;
  }
  Examples load(const Tensor& ids, int64_t, const Tensor&, int64_t, bool) const override {
    Examples e;
    const int64_t rows = ids.numel();
    e.inputs = at::empty({rows, kFeatures}, at::kDouble);
    e.targets = at::empty({rows}, at::kLong);
    const Tensor flat = ids.contiguous();
    for (int64_t r = 0; r < rows; ++r) {
      const auto id = static_cast<uint64_t>(flat.const_data_ptr<int64_t>()[r]);
      const uint64_t label = below(21, id, kClasses);
      e.targets.mutable_data_ptr<int64_t>()[r] = static_cast<int64_t>(label);
      for (uint64_t j = 0; j < kFeatures; ++j)
        e.inputs.mutable_data_ptr<double>()[r * kFeatures + static_cast<int64_t>(j)] =
            2 * uniform(31, label * kFeatures + j) - 1 + 0.6 * (uniform(41, id * kFeatures + j) - 0.5);
    }
    e.index.id = ids;
    return e;
  }
};

struct TinyBody : Layer {
  TinyBody(double d, int64_t w) : width(w), drop(d) {}
  const int64_t width;
  Weight weight{this, "weight", {width, kFeatures}, {.init = normal(0.4)}};
  Weight bias{this, "bias", {width}, {.init = uniform(0.1), .role = Role::kBias}};
  double drop;
  Tensor forward(Forward& f, const Tensor& x) const override { return f.dropout(at::tanh(at::linear(x, f[weight], f[bias])), drop, *this, 0, false); }
};
struct TinyMiddle : Layer {
  TinyMiddle(double d, int64_t w) : width(w), drop(d) {}
  const int64_t width;
  Weight weight{this, "weight", {width, width}, {.init = normal(0.3)}};
  // A running mean, as normalisation layers keep: recorded in training, used in evaluation.
  Weight mean{this, "running_mean", {width}, {.role = Role::kStatistic, .trainable = false, .momentum = 0.1}};
  double drop;
  Tensor forward(Forward& f, const Tensor& x) const override {
    if (f.training) f.record(mean, x.detach().mean(0), static_cast<double>(x.size(0)));
    const Tensor centred = f.training ? x : x - f[mean].to(x.scalar_type());
    return x + f.dropout(at::tanh(at::linear(centred, f[weight])), drop, *this, 1, false);
  }
};
struct TinyTop : Layer {
  explicit TinyTop(int64_t w) : width(w) {}
  const int64_t width;
  Weight weight{this, "weight", {kClasses, width}, {.init = normal(0.1), .role = Role::kHead}};
  Tensor forward(Forward& f, const Tensor& x) const override { return at::linear(x, f[weight]); }
};

class TinyValidation : public EvaluationSet {
 public:
  TinyValidation(std::shared_ptr<Source> source, bool text) : source_(std::move(source)), text_(text) {}
  int64_t batches() const override { return 2; }
  Examples batch(int64_t i) const override {
    const Tensor ids = at::arange(6, at::kLong) * (text_ ? kLength : 1) + 300 * (i + 1) / 2;
    return source_->load(ids, kLength, ids, 0, false);
  }

 private:
  std::shared_ptr<Source> source_;
  bool text_;
};

// Keeps a technique of the test's own alive for both the test and the session.
class Borrowed : public Technique {
 public:
  explicit Borrowed(std::shared_ptr<Technique> t) : t_(std::move(t)) {}
  std::string_view name() const override { return t_->name(); }
  Needs needs() const override { return t_->needs(); }
  void setup(Session& s) override { t_->setup(s); }
  void start(Session& s) override { t_->start(s); }
  void on_draw(Draw& d, const Progress& p) const override { t_->on_draw(d, p); }
  void on_batch(Step& s) override { t_->on_batch(s); }
  Loss loss(const Outputs& o, const Examples& e, FunctionRef<Loss(const Outputs&, const Examples&)> n) const override { return t_->loss(o, e, n); }
  bool gradients(Step& s, Pass p, FunctionRef<bool(Pass)> n) override { return t_->gradients(s, p, n); }
  void on_gradients(Step& s) override { t_->on_gradients(s); }
  void update(Step& s, FunctionRef<void()> n) override { t_->update(s, n); }
  void after_step(Step& s) override { t_->after_step(s); }
  void evaluate(Session& s, FunctionRef<void()> n) override { t_->evaluate(s, n); }
  void after_evaluation(const Progress& p, double loss) override { t_->after_evaluation(p, loss); }
  void serialize(Archive& a) override { t_->serialize(a); }

 private:
  std::shared_ptr<Technique> t_;
};

bool bitwise_equal(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() && std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace

Choice choice_of(const Named& named) {
  Choice choice{named.first, {}, {}};
  for (const auto& [key, value] : named.second.items()) choice.given[key] = value.dump();
  return choice;
}

std::shared_ptr<Source> tiny_source(bool text) {
  if (text) return std::make_shared<TinyText>();
  return std::make_shared<TinyVectors>();
}

std::unique_ptr<Model> tiny_model(bool text, double drop, int64_t width) {
  auto model = std::make_unique<Model>();
  if (text) {
    *model = llama({.vocabulary = kVocabulary, .context = kLength, .layers = 2, .heads = 2, .width = width > 0 ? width : 16, .dropout = drop, .init = 0.2});
  } else {
    if (width == 0) width = 12;
    model->add("body", std::make_unique<TinyBody>(drop, width));
    model->add("middle", std::make_unique<TinyMiddle>(drop, width));
    model->add("top", std::make_unique<TinyTop>(width));
  }
  return model;
}

TemporaryCheckpoints::TemporaryCheckpoints() {
  std::string pattern = (std::filesystem::temp_directory_path() / "huajin-conformance-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}
TemporaryCheckpoints::~TemporaryCheckpoints() { std::filesystem::remove_all(path_); }

TinyRun::TinyRun(const TinyOptions& o) {
  Recipe recipe;
  recipe.optimizer = choice_of(o.optimizer);
  recipe.schedule = choice_of(o.schedule);
  for (auto& named : o.techniques) recipe.techniques.push_back(choice_of(named));
  std::vector<std::unique_ptr<Technique>> techniques;
  for (auto& t : o.before) techniques.push_back(std::make_unique<Borrowed>(t));
  for (auto& t : make_techniques(catalog(), recipe)) techniques.push_back(std::move(t));
  for (auto& t : o.after) techniques.push_back(std::make_unique<Borrowed>(t));
  auto source = tiny_source(o.text);
  session_ = std::make_unique<RunSession>(tiny_model(o.text, o.drop), source, std::move(techniques), single_process(),
                                          SessionOptions{.seed = o.seed,
                                                         .master = o.dtype,
                                                         .compute = o.dtype == at::kDouble ? at::kDouble : o.compute,
                                                         .micro_rows = o.micro_rows,
                                                         .recompute = o.recompute,
                                                         .loader_workers = 0});
  session_->model_maker = [text = o.text, drop = o.drop] { return tiny_model(text, drop); };
  session_->model_of_width = [text = o.text, drop = o.drop](int64_t width, int64_t) { return tiny_model(text, drop, width); };
  session_->build();
  if (!o.checkpoints.empty()) {
    KeeperOptions keeping;
    keeping.checkpoints = o.checkpoints;
    keeper_ = std::make_unique<CheckpointKeeper>(keeping);
  }
  validation_ = std::make_unique<TinyValidation>(source, o.text);
  TrainerOptions options;
  options.limits.steps = static_cast<double>(o.steps);
  options.rows = o.rows;
  options.length = kLength;
  options.on_non_finite = o.on_non_finite;
  trainer_ = std::make_unique<Trainer>(*session_, options, validation_.get(), keeper_.get());
}
TinyRun::~TinyRun() = default;

void TinyRun::save() { keeper_->save(*session_, trainer_->state(), false); }

void Trace::take(TinyRun& run) {
  losses.push_back(run.trainer().last_loss());
  norms.push_back(run.trainer().last_norm());
}
void Trace::finish(TinyRun& run, bool slots) { state = state_of(run.session(), slots); }

std::vector<std::pair<std::string, Tensor>> state_of(RunSession& session, bool slots) {
  std::vector<std::pair<std::string, Tensor>> state;
  for (auto& p : session.table().parameters) {
    state.emplace_back(p.name, p.value.clone());
    if (slots)
      for (auto& s : session.slots())
        if (s.tensors.at(static_cast<size_t>(p.index)).defined())
          state.emplace_back(s.owner + " of " + p.name, s.tensors[static_cast<size_t>(p.index)].clone());
  }
  return state;
}

Trace train(const TinyOptions& options, int64_t evaluate_every, bool slots) {
  TinyRun run(options);
  Trace trace;
  for (int64_t i = 0; i < options.steps; ++i) {
    run.trainer().step();
    trace.take(run);
    if (evaluate_every > 0 && (i + 1) % evaluate_every == 0) run.trainer().evaluate();
  }
  trace.finish(run, slots);
  return trace;
}

std::string difference(const Trace& a, const Trace& b, double tolerance) {
  const auto off = [&](double x, double y) {
    return tolerance == 0 ? std::memcmp(&x, &y, sizeof x) != 0 : !(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y)));
  };
  for (size_t i = 0; i < std::max(a.losses.size(), b.losses.size()); ++i) {
    if (i >= a.losses.size() || i >= b.losses.size()) return "one run is shorter";
    if (off(a.losses[i], b.losses[i]))
      return "loss of step " + std::to_string(i) + ": " + std::to_string(a.losses[i]) + " and " + std::to_string(b.losses[i]);
    if (off(a.norms[i], b.norms[i]))
      return "norm of step " + std::to_string(i) + ": " + std::to_string(a.norms[i]) + " and " + std::to_string(b.norms[i]);
  }
  if (a.state.size() != b.state.size()) return "numbers of tensors: " + std::to_string(a.state.size()) + " and " + std::to_string(b.state.size());
  for (size_t i = 0; i < a.state.size(); ++i) {
    const auto& [name, x] = a.state[i];
    const auto& y = b.state[i].second;
    if (name != b.state[i].first) return name + " against " + b.state[i].first;
    if (tolerance == 0 ? !bitwise_equal(x, y) : !(x.sizes() == y.sizes() && (x - y).abs().max().item<double>() <= tolerance)) return name;
  }
  return "";
}

}  // namespace huajin
