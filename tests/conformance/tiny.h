// A whole run that takes milliseconds: a tiny model, data in memory, techniques of the catalog as a recipe would make them.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "huajin/core/recipe.h"
#include "huajin/core/session.h"
#include "huajin/core/source.h"
#include "huajin/core/trainer.h"

namespace huajin {

using Named = std::pair<std::string, nlohmann::json>;  // a technique and its options

struct TinyOptions {
  std::vector<Named> techniques{};
  Named optimizer{"sgd", {{"learning_rate", 0.1}}};
  Named schedule{"constant", nlohmann::json::object()};
  bool text = false;  // Llama style on tokens with ragged masks; else a classifier of vectors with labels, dropout in both
  int64_t steps = 12, rows = 8, micro_rows = 0;
  bool recompute = false;
  at::ScalarType dtype = at::kFloat, compute = at::kFloat;
  double drop = 0.1;
  uint64_t seed = 3;
  std::string on_non_finite = "skip";
  std::string checkpoints{};                                // folder; "": nothing is kept
  std::vector<std::shared_ptr<Technique>> before{}, after{};  // of the test's own; before: outermost
};

Choice choice_of(const Named& named);
std::shared_ptr<Source> tiny_source(bool text);
std::unique_ptr<Model> tiny_model(bool text, double drop, int64_t width = 0);  // width 0: 16 (text), 12

class TemporaryCheckpoints {  // a folder of the test, gone with it
 public:
  TemporaryCheckpoints();
  ~TemporaryCheckpoints();
  TemporaryCheckpoints(const TemporaryCheckpoints&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class TinyRun {
 public:
  explicit TinyRun(const TinyOptions& options);
  ~TinyRun();
  RunSession& session() { return *session_; }
  Trainer& trainer() { return *trainer_; }
  bool resume() { return trainer_->resume(); }
  void save();

 private:
  std::unique_ptr<EvaluationSet> validation_;
  std::unique_ptr<Keeper> keeper_;
  std::unique_ptr<RunSession> session_;
  std::unique_ptr<Trainer> trainer_;
};

// What a run leaves: compared bit for bit, or within a tolerance.
struct Trace {
  std::vector<double> losses, norms;
  std::vector<std::pair<std::string, Tensor>> state;  // weights, statistics and slots, by name

  void take(TinyRun& run);                       // losses and norms of the step just made
  void finish(TinyRun& run, bool slots = true);  // state at the end
};
Trace train(const TinyOptions& options, int64_t evaluate_every = 0, bool slots = true);
// Empty if equal; else what differs first. tolerance 0: bit for bit.
std::string difference(const Trace& a, const Trace& b, double tolerance = 0);
std::vector<std::pair<std::string, Tensor>> state_of(RunSession& session, bool slots = true);

}  // namespace huajin
