// Save, load, go on: bit for bit (G-2), or refused with nothing changed (pain.md B1 to B17).
#include "huajin/core/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "huajin/core/communicator.h"
#include "huajin/core/errors.h"
#include "huajin/core/rng.h"
#include "huajin/io/json.h"
#include "huajin/optim/averaging/ema/ema.h"
#include "huajin/optim/learning_rate/adamw/adamw.h"
#include "huajin/optim/learning_rate/linear/linear.h"
#include "huajin/optim/learning_rate/sgd/sgd.h"
#include "huajin/optim/objective/sam/sam.h"

namespace huajin {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kTokens = 13;

struct KeptEmbedding : Layer {
  Weight weight;
  explicit KeptEmbedding(int64_t width) : weight(this, "weight", {kTokens, width}, {.init = normal(0.5), .role = Role::kEmbedding}) {}
  Tensor forward(Forward& f, const Tensor& x) const override { return f.rows(weight, x); }
};
struct KeptBlock : Layer {
  Weight weight, bias;
  explicit KeptBlock(int64_t width)
      : weight(this, "weight", {width, width}, {.init = normal(0.4)}), bias(this, "bias", {width}, {.init = uniform(0.1), .role = Role::kBias}) {}
  Tensor forward(Forward& f, const Tensor& x) const override {
    return x + f.dropout(at::tanh(at::linear(x, f[weight], f[bias])), 0.3, *this, 0, false);
  }
};
struct KeptHead : Layer {
  Weight weight;
  explicit KeptHead(int64_t width) : weight(this, "weight", {kTokens, width}, {.role = Role::kHead}) {}
  Tensor forward(Forward& f, const Tensor& x) const override { return at::linear(x, f[weight]); }
};
class HashedTokens : public Source {
 public:
  bool classifies() const override { return false; }
  int64_t size() const override { return 100; }  // epochs end in the middle of the run
  int64_t classes() const override { return kTokens; }
  int64_t units_per_row(int64_t length) const override { return length; }
  Tensor ids(uint64_t, int64_t at, int64_t rows, int64_t length) const override { return (at::arange(rows, at::kLong) * length + at).remainder(97); }
  Examples load(const Tensor& ids, int64_t length, const Tensor&, int64_t, bool) const override {
    Examples e;
    e.inputs = at::empty({ids.numel(), length}, at::kLong);
    e.targets = at::empty_like(e.inputs);
    for (int64_t r = 0; r < ids.numel(); ++r)
      for (int64_t t = 0; t < length; ++t) {
        const auto at = static_cast<uint64_t>(ids[r].item<int64_t>() + t);
        e.inputs[r][t] = static_cast<int64_t>(below(5, at, kTokens));
        e.targets[r][t] = static_cast<int64_t>(below(5, at + 1, kTokens));
      }
    e.index.id = ids;
    return e;
  }
};
class FewTokens : public EvaluationSet {
 public:
  int64_t batches() const override { return 2; }
  Examples batch(int64_t i) const override { return HashedTokens().load(at::arange(2, at::kLong) + 50 * (i + 1), 4, {}, 0, false); }
};

struct KeptOptions {
  std::string optimizer = "adamw";
  int64_t width = 6;
  int blocks = 2;
  uint64_t seed = 3;
  bool sam = false;
  at::ScalarType compute = at::kFloat, master = at::kFloat;
};
// A whole run: session, keeper, trainer.
struct KeptRun {
  std::unique_ptr<RunSession> session;
  std::unique_ptr<CheckpointKeeper> keeper;
  FewTokens validation;
  std::unique_ptr<Trainer> trainer;
  std::vector<std::string> notes;

  explicit KeptRun(const std::string& checkpoints, const KeptOptions& o = {}) {
    auto model = std::make_unique<Model>();
    model->add("embedding", make<KeptEmbedding>(o.width));
    for (int b = 0; b < o.blocks; ++b) model->add("block." + std::to_string(b), make<KeptBlock>(o.width));
    model->add("head", make<KeptHead>(o.width));
    model->tie("head.weight", "embedding.weight");
    model->config_json = "{\"model_type\":\"kept\"}";
    std::vector<std::unique_ptr<Technique>> techniques;
    if (o.sam) techniques.push_back(std::make_unique<Sam>(SamConfig{}));
    techniques.push_back(std::make_unique<Ema>(EmaConfig{.decay = 0.9}));
    if (o.optimizer == "adamw")
      techniques.push_back(std::make_unique<Adamw>(AdamwConfig{.learning_rate = 0.05}));
    else
      techniques.push_back(std::make_unique<Sgd>(SgdConfig{}));
    techniques.push_back(std::make_unique<LinearSchedule>(LinearScheduleConfig{}));
    session = std::make_unique<RunSession>(std::move(model), std::make_shared<HashedTokens>(), std::move(techniques), single_process(),
                                           SessionOptions{.seed = o.seed, .master = o.master, .compute = o.compute, .micro_rows = 2});
    session->build();
    keeper = std::make_unique<CheckpointKeeper>(KeeperOptions{
        .checkpoints = checkpoints, .recipe = "seed = 3\n", .model_files = {}, .note = [this](const std::string& n) { notes.push_back(n); }});
    trainer = std::make_unique<Trainer>(*session, TrainerOptions{.limits = parse_limits("12step", "test"), .rows = 6, .length = 4}, &validation,
                                        keeper.get());
  }
  void go_to(int64_t step) const {
    while (trainer->state().progress.step < step) trainer->step();
  }
  std::string save() const { return keeper->save(*session, trainer->state(), false); }
  // Everything that the future depends on, as text.
  std::string all() const {
    std::string text = weights_hash(session->table());
    for (Slot& slot : session->slots())
      for (Tensor& tensor : slot.tensors)
        text += "\n" + slot.owner + " " +
                (tensor.defined() ? xxh3_hex(Bytes(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes())) : "-");
    const Progress& p = trainer->state().progress;
    return text + "\n" + std::to_string(p.step) + " " + std::to_string(p.draw) + " " + std::to_string(p.tokens) + " " + std::to_string(p.flops) +
           " " + std::to_string(p.fraction);
  }
};

class SessionCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "huajin-session-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  // The message of a refusal; the run is as it was.
  std::string refusal(KeptRun& run) const {
    const std::string before = run.all();
    std::string message;
    try {
      run.trainer->resume();
    } catch (const UserError& e) {
      message = e.what();
    }
    EXPECT_EQ(run.all(), before);
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }
  std::string folder_;
};

void stop_at_every_step(const std::string& folder, const KeptOptions& options) {
  KeptRun whole(folder + "/whole", options);
  whole.go_to(12);
  const std::string expected = whole.all();
  const double loss = whole.trainer->last_loss();
  for (int64_t s = 1; s < 12; ++s) {
    const std::string checkpoints = folder + "/" + std::to_string(s);
    {
      KeptRun first(checkpoints, options);
      first.go_to(s);
      if (s % 3 == 0) first.trainer->evaluate();  // just after an evaluation
      ASSERT_NE(first.save(), "");
    }
    if (s % 4 == 0) {  // twice in a row
      KeptRun again(checkpoints, options);
      ASSERT_TRUE(again.trainer->resume());
      ASSERT_NE(again.save(), "");
    }
    KeptRun second(checkpoints, options);
    ASSERT_TRUE(second.trainer->resume());
    EXPECT_EQ(second.trainer->state().progress.step, s);
    second.go_to(12);
    EXPECT_EQ(second.all(), expected) << "stopped at step " << s;
    EXPECT_EQ(second.trainer->last_loss(), loss);
    if (s == 1) {
      EXPECT_NE(second.all(), KeptRun(folder + "/none", options).all());
    }
  }
}
TEST_F(SessionCheckpoint, StopAtEveryStepIsBitwise) { stop_at_every_step(folder_, {}); }
TEST_F(SessionCheckpoint, StopAtEveryStepIsBitwiseWithSamInDouble) {
  stop_at_every_step(folder_, {.sam = true, .compute = at::kDouble, .master = at::kDouble});
}
// The uninterrupted run must renew its working copies as a resumed one does.
TEST_F(SessionCheckpoint, StopAtEveryStepIsBitwiseInBfloat16) { stop_at_every_step(folder_, {.compute = at::kBFloat16}); }
TEST_F(SessionCheckpoint, StopAtEveryStepIsBitwiseInBfloat16WithSgd) { stop_at_every_step(folder_, {.optimizer = "sgd", .compute = at::kBFloat16}); }
TEST_F(SessionCheckpoint, StopAtEveryStepIsBitwiseInHalfWithItsScaler) {
  stop_at_every_step(folder_, {.compute = at::kHalf});
  const Json json = parse_json(OpenCheckpoint(newest_good_checkpoint(folder_ + "/5").path).state_json(), "state");
  EXPECT_TRUE(json["numbers"].contains("execution/scale"));
  EXPECT_TRUE(json["numbers"].contains("ema/total"));
}

TEST_F(SessionCheckpoint, LoadingTwiceEqualsOnceAndSavesTheSameFiles) {
  KeptRun run(folder_ + "/a");
  run.go_to(5);
  const std::string path = run.save();
  KeptRun other(folder_ + "/a");
  ASSERT_TRUE(other.trainer->resume());
  ASSERT_TRUE(other.trainer->resume());
  EXPECT_EQ(other.all(), run.all());
  CheckpointKeeper elsewhere(KeeperOptions{.checkpoints = folder_ + "/b", .recipe = "seed = 3\n", .model_files = {}, .note = {}});
  TrainerState state = other.trainer->state();
  state.elapsed_seconds = run.trainer->state().elapsed_seconds;
  const std::string again = elsewhere.save(*other.session, state, true);
  for (const char* file : {"model/model.safetensors", "model/config.json", "state.safetensors", "state.json", "manifest.json"})
    EXPECT_EQ(read_file(path + "/" + file), read_file(again + "/" + file)) << file;
}

TEST_F(SessionCheckpoint, FactsAndHash) {
  KeptRun run(folder_);
  run.go_to(3);
  const OpenCheckpoint checkpoint(run.save());
  const CheckpointFacts facts = checkpoint_facts(checkpoint);
  EXPECT_EQ(facts.recipe, "seed = 3\n");
  EXPECT_EQ(facts.weights_hash, weights_hash(run.session->table()));
  EXPECT_EQ(facts.seed, 3u);
  EXPECT_EQ(facts.state.progress.step, 3);
  EXPECT_FALSE(checkpoint.model().find("head.weight"));  // tied: stored once
  const std::string before = weights_hash(run.session->table());
  run.session->table().parameters[1].value.view(-1)[0].add_(1e-6);
  EXPECT_NE(weights_hash(run.session->table()), before);
}

TEST_F(SessionCheckpoint, AnotherModelOrOptimizerIsRefusedWithAllNamesAndNothingChanged) {
  KeptRun run(folder_);
  run.go_to(4);
  run.save();
  KeptRun wider(folder_, {.width = 8}), deeper(folder_, {.blocks = 3}), shallower(folder_, {.blocks = 1}), sgd(folder_, {.optimizer = "sgd"}),
      seed(folder_, {.seed = 4}), precise(folder_, {.compute = at::kDouble, .master = at::kDouble});
  EXPECT_NE(refusal(wider).find("block.0.weight is 6x6, 8x8 is needed"), std::string::npos);
  EXPECT_NE(refusal(wider).find("embedding.weight is 13x6, 13x8 is needed"), std::string::npos);
  EXPECT_NE(refusal(deeper).find("missing weight block.2.weight; missing weight block.2.bias"), std::string::npos) << refusal(deeper);
  EXPECT_NE(refusal(shallower).find("unexpected weight block.1."), std::string::npos) << refusal(shallower);
  EXPECT_NE(refusal(sgd).find("unexpected state of adamw"), std::string::npos) << refusal(sgd);
  EXPECT_NE(refusal(seed).find("seed is 3, the run has 4"), std::string::npos) << refusal(seed);
  EXPECT_NE(refusal(precise).find("is F32, F64 is needed"), std::string::npos) << refusal(precise);
  EXPECT_NE(refusal(precise).find("--init-from"), std::string::npos);
}

TEST_F(SessionCheckpoint, DamagedNewestIsSkippedAndSaidSo) {
  KeptRun run(folder_);
  run.go_to(2);
  run.save();
  const std::string expected = run.all();
  run.go_to(4);
  const std::string newest = run.save();
  fs::resize_file(newest + "/state.safetensors", fs::file_size(newest + "/state.safetensors") - 1);
  KeptRun second(folder_);
  ASSERT_TRUE(second.trainer->resume());
  EXPECT_EQ(second.all(), expected);
  ASSERT_EQ(second.notes.size(), 1u);
  EXPECT_NE(second.notes[0].find("step-00000004/state.safetensors"), std::string::npos) << second.notes[0];
  std::ofstream(folder_ + "/step-00000002/manifest.json") << "{}";
  EXPECT_THROW(second.trainer->resume(), DamagedError);
  EXPECT_FALSE(KeptRun(folder_ + "/empty").trainer->resume());
}

TEST_F(SessionCheckpoint, FullDiskIsSaidAndTrainingGoesOn) {
  KeptRun run(folder_);
  run.go_to(1);
  ASSERT_NE(run.save(), "");
  run.go_to(2);
  {
    ScopedDiskHook full([](const DiskCall& call, size_t&) { return std::string(call.name) == "write" ? ENOSPC : 0; });
    EXPECT_EQ(run.save(), "");
  }
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("training goes on"), std::string::npos);
  run.go_to(3);
  EXPECT_NE(run.save(), "");
  EXPECT_EQ(list_checkpoints(folder_).size(), 2u);
}

TEST_F(SessionCheckpoint, WeightsFromElsewhere) {
  KeptRun run(folder_);
  run.go_to(5);
  const std::string model = run.save() + "/model";
  KeptRun fresh(folder_ + "/other", {.optimizer = "sgd", .seed = 9});
  EXPECT_EQ(load_weights(*fresh.session, Safetensors(model)), 5);
  EXPECT_EQ(weights_hash(fresh.session->table()), weights_hash(run.session->table()));
  EXPECT_TRUE(at::equal(fresh.session->slots()[0].tensors[0], fresh.session->table().parameters[0].value));  // the average starts again
  // Converted, with the tied weight again and a constant of old transformers.
  std::vector<Tensor> halves;
  std::vector<TensorToStore> list;
  const auto add = [&](const std::string& name, const Tensor& value) {
    halves.push_back(value.to(at::kBFloat16).contiguous());
    list.push_back({name, "BF16", halves.back().sizes().vec(), halves.back().const_data_ptr(), halves.back().nbytes()});
  };
  for (const Parameter& p : run.session->table().parameters) add(p.name, p.value);
  add("head.weight", run.session->table().parameters[0].value);
  add("block.0.attn.bias", at::ones({1, 1, 4, 4}));
  write_safetensors(folder_ + "/half.safetensors", list);
  load_weights(*fresh.session, Safetensors(folder_ + "/half.safetensors"));
  EXPECT_TRUE(at::equal(fresh.session->table().parameters[1].value, run.session->table().parameters[1].value.to(at::kBFloat16).to(at::kFloat)));
  const auto before = weights_hash(fresh.session->table());
  list.pop_back();
  list.back().name = "stranger";
  list.erase(list.begin() + 1);
  write_safetensors(folder_ + "/bad.safetensors", list);
  try {
    load_weights(*fresh.session, Safetensors(folder_ + "/bad.safetensors"));
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("missing block.0.weight (of 5 weights: 1 missing, 1 too many); give"), std::string::npos) << e.what();
  }
  EXPECT_EQ(weights_hash(fresh.session->table()), before);
  KeptRun wide(folder_ + "/wide", {.width = 8});
  EXPECT_THROW(load_weights(*wide.session, Safetensors(model)), UserError);
}

}  // namespace
}  // namespace huajin
