// From a recipe to a run: opens the data, builds the model, the session and the trainer, and says what came of it. What `huajin train`, `resume`, `check` and
// `eval` share; a program of one's own can use it or put the same parts together by hand (tests/install/example.cpp).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "huajin/core/recipe.h"
#include "huajin/core/trainer.h"

namespace huajin {
class Tokenizer;

// What [data] named, opened. Everything about it that can be wrong has been found: UserError, DamagedError.
struct RunInputs {
  bool images = false;
  std::shared_ptr<Source> train;
  std::shared_ptr<EvaluationSet> validation;      // as often as the recipe asks
  std::shared_ptr<Tokenizer> tokenizer;           // text only
  int64_t classes = 0;                            // labels, or vocabulary
  int64_t channels = 0, height = 0, width = 0;    // images only
  std::vector<std::string> class_names;           // images only
  int64_t train_units = 0, validation_units = 0;  // tokens or images
  int64_t train_bytes = 0;                        // text
  std::string summary;                            // one line for people
  std::string warning;                            // what was left out of the data; "": nothing
};

// `cache`: folder for packed images and tokens that can be made again.
RunInputs open_inputs(const Recipe& recipe, const std::string& cache);

// What the machine and the command line decide, not the recipe.
struct RunPlace {
  std::string device = "auto";     // auto | cpu | cuda
  std::string checkpoints;         // folder; "": nothing is saved
  std::string init_from;           // folder of a Hugging Face model or a checkpoint's model/: weights only
  std::shared_ptr<Communicator> communicator;  // null: one process
};

class Run {
 public:
  // Validates everything before step 1. With init_from the folder's config decides the model.
  Run(Recipe recipe, RunInputs inputs, RunPlace place);
  ~Run();

  RunSession& session() { return *session_; }
  Trainer& trainer() { return *trainer_; }
  const Recipe& recipe() const { return recipe_; }
  const RunInputs& inputs() const { return inputs_; }
  Keeper* keeper() { return keeper_.get(); }
  double parameters() const;  // trainable numbers
  at::ScalarType compute() const { return session_->options().compute; }

 private:
  Recipe recipe_;
  RunInputs inputs_;
  std::unique_ptr<RunSession> session_;
  std::unique_ptr<Keeper> keeper_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Observer> replicas_;  // several ranks: compares their weights now and then
};

// The precision that "auto" stands for on this machine: bf16 where its matrix product is measured at least 1.5 times as fast as float32's, else fp32.
at::ScalarType choose_compute(const std::string& precision, at::Device device);

}  // namespace huajin
