#include "huajin/core/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>

#include "huajin/core/block_execution.h"
#include "huajin/core/errors.h"
#include "huajin/core/finite_report.h"

namespace huajin {
namespace {

volatile std::sig_atomic_t g_terminate = 0;
void on_signal(int) { g_terminate = 1; }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// For writing the result and leaving: an allowance, not a measurement.
constexpr double kExitSeconds = 0.35;

}  // namespace

void install_signal_handlers() {
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
  std::signal(SIGUSR1, on_signal);
}
bool termination_requested() { return g_terminate != 0; }

Trainer::Trainer(RunSession& session, TrainerOptions options, const EvaluationSet* validation, Keeper* keeper)
    : session_(session),
      options_(std::move(options)),
      validation_(validation),
      keeper_(keeper),
      budget_(options_.limits, 0, static_cast<double>(session.source().size()), !session.source().classifies()) {
  if (!options_.limits.any()) throw UserError("budget: no limit was given; say how long to train, for instance budget.limit=\"10m\" or \"500step\"");
  session.schedule().check(options_.limits.steps);
  if (options_.rows < 1) throw UserError("batch.rows=" + std::to_string(options_.rows) + ": must be at least 1");
  state_.best_loss = std::numeric_limits<double>::infinity();
  plan_reserve();
  session_.on_roll_back = [this](std::string_view why) {
    const Progress current = state_.progress;
    if (keeper_ == nullptr || !keeper_->load_newest(session_, state_))
      throw UserError("roll back (" + std::string(why) + "): this run has no checkpoint yet; set checkpoint.every");
    state_.progress.draw = current.draw, state_.progress.examples = current.examples, state_.progress.tokens = current.tokens;
    state_.progress.fraction = current.fraction, state_.progress.flops = current.flops;
    session_.progress() = state_.progress;
  };
}

bool Trainer::resume() {
  if (keeper_ == nullptr || !keeper_->load_newest(session_, state_)) return false;
  session_.progress() = state_.progress;
  budget_ = Budget(options_.limits, state_.elapsed_seconds, static_cast<double>(session_.source().size()), !session_.source().classifies());
  plan_reserve();
  state_.progress.fraction = budget_.limits().seconds < Limits::kNone ? budget_.fraction(state_.progress) : state_.progress.fraction;
  last_save_seconds_ = budget_.elapsed();
  return true;
}

Draw Trainer::recipe_draw(const Progress& progress) const {
  Draw draw{options_.rows, options_.length, 1};
  for (auto& technique : session_.techniques()) technique->on_draw(draw, progress);
  draw.rows = std::min(draw.rows, rows_left(draw, progress));
  return draw;
}

// Of the budget in examples, tokens and epochs, in rows, a multiple of the ranks: the last step takes what is left instead of a whole batch, so 3 epochs see each
// example three times.
int64_t Trainer::rows_left(const Draw& draw, const Progress& progress) const {
  const Limits& limits = options_.limits;
  const auto units = static_cast<double>(session_.source().units_per_row(draw.length)), size = static_cast<double>(session_.source().size());
  const auto examples = static_cast<double>(progress.examples), tokens = static_cast<double>(progress.tokens);
  double rows = std::min(limits.examples - examples, (limits.tokens - tokens) / units);
  rows = std::min(rows, session_.source().classifies() ? limits.epochs * size - examples : (limits.epochs * size - tokens) / units);
  rows /= static_cast<double>(draw.candidates);
  if (rows >= static_cast<double>(draw.rows)) return draw.rows;
  const int64_t ranks = session_.communicator().ranks();
  return std::max<int64_t>(1, (static_cast<int64_t>(std::ceil(rows)) + ranks - 1) / ranks) * ranks;
}

// The loop's body: what happens in a step, in order.
void Trainer::step() {
  const double began = now();
  session_.progress() = state_.progress;
  const Draw draw = recipe_draw(state_.progress);
  Step step{session_, session_.loader().draw(draw, state_.progress), state_.progress, {}, {}, {}, {}, {}, 0, false};
  for (auto& technique : session_.techniques()) technique->on_batch(step);  // the index of the whole step, the same on every rank
  announce_next();
  if (gradients_through(0, step, Pass{})) {
    session_.execution().settle(step);
    step.norm = session_.norm();
    for (auto& technique : session_.techniques()) technique->on_gradients(step);  // once, on what the optimizer will consume
    session_.optimizer().begin(step, session_.schedule().factor(step.progress));
    update_through(0, step);
    session_.gradients_changed();
    step.progress.step = ++state_.progress.step;
    session_.progress().step = state_.progress.step;
    for (auto& technique : session_.techniques()) technique->after_step(step);
    state_.skips_in_a_row = 0;
  } else {
    step.skipped = true;
    step.skip_reason.empty() ? not_finite(step) : skip(step);
  }
  for (auto& p : session_.table().parameters) p.grad = Tensor();  // the next backward pass reuses the memory
  Progress& progress = state_.progress;
  progress.draw++;
  progress.examples += draw.rows * draw.candidates;
  progress.tokens += draw.rows * draw.candidates * session_.source().units_per_row(draw.length);
  progress.flops += 3.0 * std::max(step.passes, 1) * static_cast<double>(step.batch.rows()) * session_.model().flops_per_row(draw.length);
  const double seconds = now() - began;
  state_.training_seconds += seconds;
  seconds_a_step_ = seconds_a_step_ == 0 ? seconds : 0.9 * seconds_a_step_ + 0.1 * seconds;
  fastest_seconds_a_step_ = fastest_seconds_a_step_ == 0 ? seconds_a_step_ : std::min(fastest_seconds_a_step_, seconds_a_step_);
  agree();
  read(step, seconds);
}

bool Trainer::gradients_through(size_t i, Step& step, Pass pass) {
  if (i == session_.techniques().size()) return session_.execution().gradients(step, pass);
  return session_.techniques()[i]->gradients(step, pass, [&, i](Pass inner) { return gradients_through(i + 1, step, inner); });
}

void Trainer::update_through(size_t i, Step& step) {
  if (i == session_.techniques().size()) {
    at::NoGradGuard off;
    session_.optimizer().step(session_.parameters());
    return;
  }
  session_.techniques()[i]->update(step, [&, i] { update_through(i + 1, step); });
}

void Trainer::evaluate_through(size_t i, FunctionRef<void()> innermost) {
  if (i == session_.techniques().size()) return innermost();
  session_.techniques()[i]->evaluate(session_, [&, i] { evaluate_through(i + 1, innermost); });
}

// Rows of the next draw are known: loading runs ahead. What techniques make of them in on_batch is not; partners and rows that they choose are loaded when asked for.
void Trainer::announce_next() {
  Progress next = state_.progress;
  const Draw current = recipe_draw(next);
  next.draw++;
  next.examples += current.rows * current.candidates;
  next.tokens += current.rows * current.candidates * session_.source().units_per_row(current.length);
  const Draw draw = recipe_draw(next);
  if (draw.candidates != 1) return;
  auto& comm = session_.communicator();
  for (Batch& micro : cut_batch(session_.loader().draw(draw, next), comm.rank(), comm.ranks(), session_.options().micro_rows)) session_.loader().announce(micro, next.draw);
}

void Trainer::not_finite(Step& step) {
  const std::string what = at_step() + finite_report(session_.table().parameters);
  for (auto* observer : observers_) observer->on_note(what + (options_.on_non_finite == "skip" ? "; the step is skipped" : ""));
  if (options_.on_non_finite == "stop") throw Error(kExitNotFinite, what + "; lower optimizer.learning_rate or set run.on_non_finite=\"skip\"");
  count_skip(what);
  if (options_.on_non_finite == "roll_back") session_.roll_back(what);
}

// A technique gave the step up, and may have rolled back.
void Trainer::skip(const Step& step) {
  const std::string what = at_step() + step.skip_reason;
  for (auto* observer : observers_) observer->on_note(what + "; the step is skipped");
  count_skip(what);
}

std::string Trainer::at_step() const {
  return "step " + std::to_string(state_.progress.step) + ", rank " + std::to_string(session_.communicator().rank()) + ": ";
}

void Trainer::count_skip(const std::string& what) {
  if (++state_.skips_in_a_row >= options_.most_skips)
    throw Error(kExitNotFinite, what + ", for the " + std::to_string(state_.skips_in_a_row) + "th step in a row; lower optimizer.learning_rate or raise run.most_skips");
}

// Rank 0's clock and anybody's signal, in one message a step: whoever reads fraction must agree, or ranks part company in a collective.
void Trainer::agree() {
  auto& comm = session_.communicator();
  double message[3] = {0, 0, termination_requested() ? 1.0 : 0.0};
  if (comm.rank() == 0) message[0] = budget_.fraction(state_.progress), message[1] = budget_.elapsed();
  if (comm.ranks() > 1) comm.sum(message);
  state_.progress.fraction = std::max(state_.progress.fraction, std::min(message[0], 1.0));
  state_.elapsed_seconds = message[1];
  stop_ = message[2] > 0;
  session_.progress() = state_.progress;
}

void Trainer::read(const Step& step, double seconds) {
  last_loss_ = step.loss.defined() ? step.loss.item().toDouble() : std::numeric_limits<double>::quiet_NaN();
  last_norm_ = step.norm.defined() ? step.norm.item().toDouble() : std::numeric_limits<double>::quiet_NaN();
  last_skipped_ = step.skipped;
  if (observers_.empty()) return;
  std::vector<Reading> readings{{"loss", last_loss_}, {"norm", last_norm_}, {"learning_rate", session_.optimizer().learning_rate()}};
  if (step.terms.size() > 1)
    for (auto& [name, value] : step.terms) readings.push_back({"loss." + name, value});
  if (step.passes > 1) readings.push_back({"passes", static_cast<double>(step.passes)});
  if (step.skipped) readings.push_back({"skipped", 1});
  for (auto* observer : observers_) {
    observer->on_step(state_.progress, seconds);
    observer->on_readings(state_.progress.step, readings);
  }
}

// What comes after the last step gets its time set aside: as it was measured at best, slowed down as much as steps are against their best.
void Trainer::plan_reserve() {
  if (options_.limits.seconds == Limits::kNone) return;
  if (state_.save_seconds == 0 && state_.evaluation_seconds == 0) return budget_.reserve(std::min(0.1 * options_.limits.seconds, 30.0) + kExitSeconds);
  const double slower = fastest_seconds_a_step_ > 0 ? std::clamp(seconds_a_step_ / fastest_seconds_a_step_, 1.0, 4.0) : 1.0;
  // The last step may begin just before its time is up: it gets its own.
  const double end = 1.3 * slower * (state_.save_seconds + state_.evaluation_seconds) + 1.5 * seconds_a_step_ + 0.1;
  budget_.reserve(std::min(end + kExitSeconds, 0.5 * options_.limits.seconds));
}

Evaluation Trainer::evaluate() {
  Evaluation result;
  if (validation_ == nullptr) return result;
  const double began = now();
  auto& comm = session_.communicator();
  const bool bounded = options_.limits.seconds < Limits::kNone;
  double sums[5] = {0, 0, 0, 0, 0};  // nats, items, correct, batches evaluated
  evaluate_through(0, [&] {
    for (int64_t i = comm.rank(); i < validation_->batches(); i += comm.ranks()) {
      if (bounded && budget_.elapsed() > options_.limits.seconds - kExitSeconds) break;
      const Evaluated part = session_.execution().evaluate(validation_->batch(i));
      sums[0] += part.sum, sums[1] += part.items, sums[2] += part.correct, sums[3] += 1;
    }
    if (comm.ranks() > 1) comm.sum(sums);
  });
  result.complete = sums[3] + 0.5 > static_cast<double>(validation_->batches());
  const double items = sums[1] > 0 ? sums[1] : std::numeric_limits<double>::quiet_NaN();  // nothing was seen: nothing is known
  result.loss = sums[0] / items;
  result.accuracy = sums[2] / items;
  const double bytes = validation_->bytes();
  // Cut short: the mean over what was seen stands for the rest, and `complete` says so.
  const double share = result.complete ? 1 : sums[3] / static_cast<double>(std::max<int64_t>(validation_->batches(), 1));
  const double nats = share > 0 ? sums[0] / share + validation_->charged_nats() : std::numeric_limits<double>::quiet_NaN();
  result.bits_per_byte = bytes > 0 ? nats / (bytes * std::log(2.0)) : std::numeric_limits<double>::quiet_NaN();
  result.seconds = now() - began;
  state_.evaluation_seconds = std::max(result.complete ? result.seconds : 0.0, result.complete ? 0.0 : state_.evaluation_seconds);
  if (result.complete) state_.best_loss = std::min(state_.best_loss, result.loss);
  if (result.complete) state_.evaluated_step = state_.progress.step, state_.evaluated_loss = result.loss;
  if (result.complete)
    for (auto& technique : session_.techniques()) technique->after_evaluation(state_.progress, result.loss);
  for (auto* observer : observers_) {
    if (sums[1] > 0) observer->on_evaluation(state_.progress, result.loss, result.bits_per_byte, result.accuracy);
    else observer->on_note("the deadline came before any validation data was evaluated: `huajin eval` of the run does that");
  }
  result_.evaluation = result;
  result_.evaluated = sums[1] > 0;
  return result;
}

void Trainer::save(bool last) {
  if (keeper_ == nullptr) return;
  const double began = now();
  state_.elapsed_seconds = budget_.elapsed();
  const std::string path = keeper_->save(session_, state_, last);
  if (!path.empty()) result_.checkpoint = path;
  state_.save_seconds = now() - began;
  last_save_seconds_ = budget_.elapsed();
}

bool Trainer::evaluation_due() const {
  const auto every = static_cast<int64_t>(options_.evaluate_every_steps);
  return validation_ != nullptr && every > 0 && state_.progress.step > 0 && state_.progress.step % every == 0 && !last_skipped_;
}
bool Trainer::checkpoint_due() const {
  const auto every = static_cast<int64_t>(options_.checkpoint_every_steps);
  if (every > 0) return state_.progress.step > 0 && state_.progress.step % every == 0;
  return options_.checkpoint_every_seconds > 0 && budget_.elapsed() - last_save_seconds_ >= options_.checkpoint_every_seconds;
}

// One batch tells what the whole evaluation will cost; what techniques do around it (statistics estimated anew) counts once.
void Trainer::measure_evaluation() {
  if (validation_ == nullptr || validation_->batches() == 0) return;
  const double began = now();
  double first = 0, second = 0;
  evaluate_through(0, [&] {
    const double inside = now();
    session_.execution().evaluate(validation_->batch(0));
    first = now() - inside;
    session_.execution().evaluate(validation_->batch(std::min<int64_t>(1, validation_->batches() - 1)));
    second = now() - inside - first;  // warm
  });
  const double around = now() - began - first - second;
  state_.evaluation_seconds = around + std::min(first, second) * static_cast<double>(validation_->batches()) / session_.communicator().ranks();
}

void Trainer::require_time() const {
  const double seconds = options_.limits.seconds, gone = budget_.elapsed();
  if (seconds == Limits::kNone || gone < seconds - budget_.reserved()) return;
  throw UserError("budget of " + to_string(Limits{.seconds = seconds}) + ": opening the data and building the model took " + std::to_string(gone).substr(0, 4) +
                  " s, which leaves no time for a step and a checkpoint; give at least " + std::to_string(static_cast<int64_t>(std::ceil((gone + kExitSeconds) / 0.9)) + 1) + "s");
}

Result Trainer::fit() {
  session_.open_teachers();
  bool measured = state_.save_seconds > 0;
  const bool timed = options_.limits.seconds < Limits::kNone;
  agree();
  while (!stop_ && state_.progress.fraction < 1) {
    step();
    if (result_.first_step_seconds == 0) result_.first_step_seconds = seconds_since_start();
    if (!measured && (state_.progress.step >= 8 || state_.progress.fraction > 0.05)) {  // early: what the end will cost, and something to fall back on
      measured = true;
      measure_evaluation();
      if (options_.checkpoint_every_steps == 0 && timed) save(false);
    }
    if (timed && state_.progress.draw % 8 == 0) plan_reserve();
    if (evaluation_due()) evaluate();
    if (state_.progress.fraction < 1 && !stop_ && checkpoint_due()) save(false);
    agree();
  }
  save(true);
  result_.end = stop_ ? End::kTerminated : End::kBudget;
  if (result_.end == End::kBudget) evaluate();
  result_.state = state_;
  result_.loss = last_loss_;
  result_.stall_seconds = session_.loader().stall_seconds();
  return result_;
}

}  // namespace huajin
