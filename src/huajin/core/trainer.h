// The training loop. trainer.cpp's step() is its documentation; docs/hooks.md walks through it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "huajin/core/budget.h"
#include "huajin/core/session.h"

namespace huajin {

struct TrainerOptions {
  Limits limits;
  int64_t rows = 8, length = 0;
  double evaluate_every_steps = 0;      // 0: once early (to learn what it costs) and at the end
  double checkpoint_every_steps = 0;    // 0: by time, see checkpoint_every_seconds
  double checkpoint_every_seconds = 0;  // 0: once early and at the end
  std::string on_non_finite = "skip";   // skip | stop | roll_back
  int64_t most_skips = 8;
  int64_t log_every_steps = 1;
};

struct Evaluation {
  double loss = 0;            // nats an item
  double bits_per_byte = 0;   // text: NaN where it has no meaning
  double accuracy = 0;        // of the greatest logit
  double seconds = 0;
  bool complete = true;       // false: cut short by the deadline
};

// What goes into and comes out of a checkpoint beside weights, slots and techniques.
struct TrainerState {
  Progress progress;
  double elapsed_seconds = 0;   // of the budget
  double training_seconds = 0;  // in steps
  double evaluation_seconds = 0, save_seconds = 0;  // cost of the latest full evaluation and save
  double best_loss = 0;
  int64_t skips_in_a_row = 0;
  int64_t evaluated_step = -1;  // of the latest complete evaluation, and its loss: the score of a checkpoint of the same step
  double evaluated_loss = 0;
};

// Saves and restores a session; core/checkpoint.h has the one that writes folders. Throws nothing on a full disk: says so and returns "".
class Keeper {
 public:
  virtual ~Keeper() = default;
  virtual std::string save(RunSession& session, const TrainerState& state, bool last) = 0;  // path; "" if it failed and the old one stays
  virtual bool load_newest(RunSession& session, TrainerState& state) = 0;                   // false: there is none
};

enum class End { kBudget, kTerminated, kNotFinite };

struct Result {
  End end = End::kBudget;
  TrainerState state;
  Evaluation evaluation;
  double first_step_seconds = 0;  // from process start to the end of the first step
  double loss = 0;                // of the last step
  double stall_seconds = 0;
  std::string checkpoint;
  bool evaluated = false;
};

class Trainer {
 public:
  // `validation` may be null (no evaluation), `keeper` may be null (nothing is saved). The session is built.
  Trainer(RunSession& session, TrainerOptions options, const EvaluationSet* validation, Keeper* keeper);

  void observe(Observer* observer) { observers_.push_back(observer); }
  // Looks for a checkpoint of the keeper's and continues from it; false: none.
  bool resume();
  // UserError if the budget's time is gone before the first step.
  void require_time() const;
  Result fit();

  // One optimizer step. Public for tests and for those who write their own loop.
  void step();
  Evaluation evaluate();
  // With the weights that evaluations see: averages stand in, and go again afterwards.
  void with_evaluated_weights(FunctionRef<void()> inside) { evaluate_through(0, inside); }
  const TrainerState& state() const { return state_; }
  Budget& budget() { return budget_; }
  double last_loss() const { return last_loss_; }
  double last_norm() const { return last_norm_; }
  bool last_skipped() const { return last_skipped_; }

 private:
  Draw recipe_draw(const Progress& progress) const;
  int64_t rows_left(const Draw& draw, const Progress& progress) const;
  bool gradients_through(size_t technique, Step& step, Pass pass);
  void update_through(size_t technique, Step& step);
  void evaluate_through(size_t technique, FunctionRef<void()> innermost);
  void announce_next();
  void measure_evaluation();
  void not_finite(Step& step);
  void skip(const Step& step);
  std::string at_step() const;
  void count_skip(const std::string& what);
  void read(const Step& step, double seconds);
  void save(bool last);
  void agree();
  void plan_reserve();
  bool evaluation_due() const;
  bool checkpoint_due() const;

  RunSession& session_;
  TrainerOptions options_;
  const EvaluationSet* validation_;
  Keeper* keeper_;
  Budget budget_;
  std::vector<Observer*> observers_;
  TrainerState state_;
  Result result_;
  double last_loss_ = 0, last_norm_ = 0;
  bool last_skipped_ = false;
  bool stop_ = false;
  double last_save_seconds_ = 0;         // elapsed when the newest checkpoint was made
  double seconds_a_step_ = 0;            // recent, smoothed
  double fastest_seconds_a_step_ = 0;    // the least that the smoothed time has been
};

// Set by SIGTERM and SIGINT once install_signal_handlers() was called: the run saves at the next step boundary and ends.
void install_signal_handlers();
bool termination_requested();

}  // namespace huajin
