// The engine against plain autograd: one block at a time must give what one graph gives.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "huajin/core/block_execution.h"
#include "huajin/core/communicator.h"
#include "huajin/core/logits.h"
#include "huajin/core/rng.h"
#include "huajin/core/session.h"
#include "huajin/core/softmax.h"
#include "huajin/core/trainer.h"

namespace huajin {
namespace {

constexpr int64_t kVocabulary = 11, kWidth = 6;

struct TinyEmbedding : Layer {
  Weight weight{this, "weight", {kVocabulary, kWidth}, {.init = normal(0.5), .role = Role::kEmbedding}};
  Tensor forward(Forward& f, const Tensor& x) const override { return f.rows(weight, x); }
};
struct TinyBlock : Layer {
  Weight weight{this, "weight", {kWidth, kWidth}, {.init = normal(0.5)}};
  Weight bias{this, "bias", {kWidth}, {.init = uniform(0.1), .role = Role::kBias}};
  double drop = 0.2;
  Tensor forward(Forward& f, const Tensor& x) const override {
    const Tensor y = f.dropout(at::tanh(at::linear(x, f[weight], f[bias])), drop, *this, 0, false);
    f.add("square", y.pow(2).sum(), 0.01);
    return x + y;
  }
};
struct TinyHead : Layer {
  Weight weight{this, "weight", {kVocabulary, kWidth}, {.role = Role::kHead}};
  Tensor forward(Forward& f, const Tensor& x) const override { return at::linear(x, f[weight]); }
};

std::unique_ptr<Model> tiny() {
  auto m = std::make_unique<Model>();
  m->add("embedding", make<TinyEmbedding>());
  m->add("block.0", make<TinyBlock>());
  m->add("block.1", make<TinyBlock>());
  m->add("head", make<TinyHead>());
  m->tie("head.weight", "embedding.weight");
  return m;
}

class Ramp : public Source {  // token i of the stream is a hash of i; ragged masks
 public:
  bool classifies() const override { return false; }
  int64_t size() const override { return 1000; }
  int64_t classes() const override { return kVocabulary; }
  int64_t units_per_row(int64_t length) const override { return length; }
  Tensor ids(uint64_t, int64_t at, int64_t rows, int64_t length) const override { return at::arange(rows, at::kLong) * length + at; }
  Examples load(const Tensor& ids, int64_t length, const Tensor&, int64_t, bool) const override {
    Examples e;
    e.inputs = at::empty({ids.numel(), length}, at::kLong);
    e.targets = at::empty_like(e.inputs);
    e.mask = at::ones({ids.numel(), length}, at::kDouble);
    for (int64_t r = 0; r < ids.numel(); ++r)
      for (int64_t t = 0; t < length; ++t) {
        const int64_t at = ids[r].item<int64_t>() + t;
        e.inputs[r][t] = static_cast<int64_t>(below(7, at, kVocabulary));
        e.targets[r][t] = static_cast<int64_t>(below(7, at + 1, kVocabulary));
        if (t >= length - ids[r].item<int64_t>() / length % 3) e.mask[r][t] = 0;
      }
    e.index.id = ids;
    return e;
  }
};

struct PlainSgd : Technique, Optimizer {
  std::string_view name() const override { return "plain_sgd"; }
  struct Rule : Optimizer {
    void step(std::span<Parameter* const> parameters) override {
      for (Parameter* p : parameters)
        if (p->grad.defined()) p->value.sub_(p->grad, 0.1);
    }
    double learning_rate() const override { return 0.1; }
  };
  struct Flat : Schedule {
    double factor(const Progress&) const override { return 1; }
  };
  void setup(Session& s) override {
    s.set_optimizer(std::make_unique<Rule>());
    s.set_schedule(std::make_unique<Flat>());
  }
  void step(std::span<Parameter* const>) override {}
  double learning_rate() const override { return 0; }
};

struct Outcome {
  std::vector<double> losses, norms;
  Tensor weights;
};

Outcome train(int64_t micro_rows, bool recompute, at::ScalarType dtype = at::kDouble) {
  std::vector<std::unique_ptr<Technique>> techniques;
  techniques.push_back(std::make_unique<PlainSgd>());
  RunSession session(tiny(), std::make_shared<Ramp>(), std::move(techniques), single_process(),
                     {.seed = 3, .master = dtype, .compute = dtype, .micro_rows = micro_rows, .recompute = recompute});
  session.build();
  Trainer trainer(session, {.limits = parse_limits("5step", "test"), .rows = 6, .length = 5}, nullptr, nullptr);
  Outcome outcome;
  for (int i = 0; i < 5; ++i) {
    trainer.step();
    outcome.losses.push_back(trainer.last_loss());
    outcome.norms.push_back(trainer.last_norm());
  }
  std::vector<Tensor> flat;
  for (auto& p : session.table().parameters) flat.push_back(p.value.reshape(-1).to(at::kDouble));
  outcome.weights = at::cat(flat);
  return outcome;
}

void expect_equal(const Outcome& a, const Outcome& b, double tolerance) {
  for (size_t i = 0; i < a.losses.size(); ++i) {
    EXPECT_NEAR(a.losses[i], b.losses[i], tolerance) << "loss of step " << i;
    EXPECT_NEAR(a.norms[i], b.norms[i], tolerance) << "norm of step " << i;
  }
  EXPECT_LE((a.weights - b.weights).abs().max().item<double>(), tolerance);
}

TEST(Execution, MicroBatchesDoNotChangeTheStep) {
  const Outcome whole = train(0, false);
  EXPECT_LT(whole.losses.back(), whole.losses.front());
  for (int64_t rows : {1, 2, 4}) expect_equal(train(rows, false), whole, 1e-12);
}

TEST(Execution, MicroBatchesInFloat32WithSgd) { expect_equal(train(2, false, at::kFloat), train(0, false, at::kFloat), 1e-6); }

TEST(Execution, RecomputationIsBitwise) {
  const Outcome kept = train(2, false), again = train(2, true);
  EXPECT_EQ(kept.losses, again.losses);
  EXPECT_EQ(kept.norms, again.norms);
  EXPECT_TRUE(at::equal(kept.weights, again.weights));
}

// One graph, one loss, autograd's own gradients, no engine.
TEST(Execution, EqualsPlainAutograd) {
  std::vector<std::unique_ptr<Technique>> techniques;
  techniques.push_back(std::make_unique<PlainSgd>());
  auto source = std::make_shared<Ramp>();
  RunSession session(tiny(), source, std::move(techniques), single_process(), {.seed = 3, .master = at::kDouble, .compute = at::kDouble});
  for (auto& block : session.model().blocks)
    if (auto* b = dynamic_cast<TinyBlock*>(block.layer.get())) b->drop = 0;
  session.build();
  std::vector<Tensor> w;
  for (auto& p : session.table().parameters) w.push_back(p.value.clone().requires_grad_(true));
  const Examples e = source->load(source->ids(3, 0, 6, 5), 5, Tensor(), 0, true);
  Tensor x = at::embedding(w[0], e.inputs), square;
  for (int b = 0; b < 2; ++b) {
    const Tensor y = at::tanh(at::linear(x, w[1 + 2 * b], w[2 + 2 * b]));
    square = square.defined() ? square + y.pow(2).sum() : y.pow(2).sum();
    x = x + y;
  }
  const Tensor ce = at::cross_entropy_loss(at::linear(x, w[0]).flatten(0, 1), e.targets.flatten(), {}, 0).view_as(e.targets);
  const Tensor loss = ((ce * e.mask).sum() + 0.01 * square) / e.mask.sum();
  torch::autograd::backward({loss});

  Step step{session, session.loader().draw(Draw{6, 5, 1}, Progress{}), Progress{}, {}, {}, {}, {}, {}, 0, false};
  ASSERT_TRUE(session.execution().gradients(step, Pass{}));
  EXPECT_NEAR(step.loss.item<double>(), loss.item<double>(), 1e-13);
  for (size_t i = 0; i < w.size(); ++i) {
    const Tensor difference = (session.table().parameters[i].grad - w[i].grad()).abs().max() / w[i].grad().abs().max();
    EXPECT_LE(difference.item<double>(), 1e-12) << session.table().parameters[i].name;
  }
}

TEST(Execution, CutKeepsGroupsAndCoversAll) {
  Batch batch;
  batch.id = at::arange(14, at::kLong);
  batch.group = 2;
  std::vector<int64_t> seen;
  for (int rank = 0; rank < 3; ++rank)
    for (auto& micro : cut_batch(batch, rank, 3, 3)) {
      EXPECT_EQ(micro.rows() % 2, 0);
      for (int64_t i = 0; i < micro.rows(); ++i) seen.push_back(micro.id[i].item<int64_t>());
    }
  EXPECT_EQ(seen.size(), 14u);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<int64_t>(i));
}

TEST(Softmax, KernelsEqualFloat64) {
  for (int64_t classes : {1, 2, 7, 8, 9, 65, 1000, 4097}) {
    const Tensor x = at::randn({5, classes}) * 6, targets = at::randint(classes, {5}, at::kLong), grad = at::rand({5});
    Tensor lse = at::empty({5}), y = x.clone();
    log_sum_exp_rows(x.const_data_ptr<float>(), 5, classes, lse.mutable_data_ptr<float>());
    const Tensor exact = at::logsumexp(x.to(at::kDouble), 1);
    EXPECT_LE((lse - exact).abs().max().item<double>(), 2e-6 * std::max(1.0, exact.abs().max().item<double>())) << classes;
    softmax_gradient_rows(y.mutable_data_ptr<float>(), lse.const_data_ptr<float>(), targets.const_data_ptr<int64_t>(), grad.const_data_ptr<float>(), 5, classes);
    Tensor expected = at::softmax(x.to(at::kDouble), 1);
    expected.scatter_add_(1, targets.unsqueeze(1), -at::ones({5, 1}, at::kDouble));
    EXPECT_LE((y - expected * grad.unsqueeze(1)).abs().max().item<double>(), 2e-6) << classes;
  }
}

TEST(Logits, LookingAtOtherQuantitiesKeepsTheGradientRight) {
  const Tensor base = at::randn({4, 9}), targets = at::randint(9, {4}, at::kLong);
  const auto gradient = [&](at::ScalarType dtype) {
    Tensor leaf = base.to(dtype).requires_grad_(true);
    auto logits = dense_logits(leaf * 1.0);
    const Tensor loss = (logits->cross_entropy(targets) + logits->log_partition().pow(2) * 0.1 + logits->mean()).sum();
    torch::autograd::backward({loss});
    return leaf.grad().to(at::kDouble);
  };
  EXPECT_LE((gradient(at::kFloat) - gradient(at::kDouble)).abs().max().item<double>(), 1e-5);
}

TEST(Trainer, NonFiniteStepIsSkippedAndTouchesNothing) {
  std::vector<std::unique_ptr<Technique>> techniques;
  struct Poison : Technique {
    std::string_view name() const override { return "poison"; }
    bool gradients(Step& step, Pass pass, FunctionRef<bool(Pass)> next) override {
      if (step.progress.draw == 1) step.session.parameters()[0]->value.view(-1)[0] = std::numeric_limits<double>::infinity();
      const bool ok = next(pass);
      if (step.progress.draw == 1) step.session.parameters()[0]->value.view(-1)[0] = 0.25;
      return ok;
    }
  };
  techniques.push_back(std::make_unique<Poison>());
  techniques.push_back(std::make_unique<PlainSgd>());
  RunSession session(tiny(), std::make_shared<Ramp>(), std::move(techniques), single_process(), {.seed = 3, .master = at::kDouble, .compute = at::kDouble});
  session.build();
  Trainer trainer(session, {.limits = parse_limits("5step", "test"), .rows = 6, .length = 5}, nullptr, nullptr);
  struct Notes : Observer {
    std::vector<std::string> texts;
    void on_note(const std::string& text) override { texts.push_back(text); }
  } notes;
  trainer.observe(&notes);
  trainer.step();
  session.parameters()[0]->value.view(-1)[0] = 0.25;
  const Tensor before = session.parameters()[1]->value.clone();
  trainer.step();
  EXPECT_TRUE(trainer.last_skipped());
  EXPECT_TRUE(at::equal(before, session.parameters()[1]->value));
  EXPECT_EQ(trainer.state().progress.step, 1);
  EXPECT_EQ(trainer.state().progress.draw, 2);
  ASSERT_EQ(notes.texts.size(), 1u);
  EXPECT_NE(notes.texts[0].find("rank 0"), std::string::npos);
  trainer.step();
  EXPECT_FALSE(trainer.last_skipped());
}

}  // namespace
}  // namespace huajin
