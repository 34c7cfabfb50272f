// Schedule-Free AdamW: no schedule to an end that must be known. Gradients are taken at y, between the fast point z and the average x of all its places; evaluations see x.
// Defazio et al., "The Road Less Scheduled", NeurIPS 2024 (arXiv 2405.15682), algorithm 1.
#pragma once
#include <memory>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"
#include "huajin/optim/averaging/stand_in.h"
#include "huajin/optim/learning_rate/parameter_lists.h"

namespace huajin {

struct ScheduleFreeConfig {
  double learning_rate = 2.5e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  StandInConfig stand_in{0};
  void fields(Fields& f) {
    f.number("learning_rate", learning_rate, {.least = 0, .open = true}, "step size before the schedule's factor; the schedule: constant with a warm-up");
    f.number("beta1", beta1, {.least = 0, .most = 1, .open = true, .open_most = true}, "how near to the average the gradient is taken");
    f.number("beta2", beta2, {.least = 0, .most = 1, .open_most = true}, "decay of the mean of squared gradients");
    f.number("epsilon", epsilon, {.least = 0, .open = true}, "added to the root of the second moment");
    f.number("weight_decay", weight_decay, {.least = 0}, "decoupled, at y: z moves by - rate x weight_decay y a step; matrices only");
    stand_in.fields(f);
  }
};

// Weight of this step's z in the average, with the sum of the squared rates until and with it: c = rate^2 / sum of rate^2.
struct ScheduleFreeTotals {
  double squares = 0, step = 0;
  double share(int64_t step_now, double rate);  // counts a step once, however often it is asked
};

// One step; w holds y; slots: z (begins as w), v. With gamma = rate sqrt(1 - b2^step) and share c of gamma:
//   x = (y - (1-b1) z) / b1;  v <- b2 v + (1-b2) g^2;  z <- z - gamma (g / (sqrt(v) + epsilon) + weight_decay y)
//   x <- (1-c) x + c z;  y <- (1-b1) z + b1 x
void schedule_free_update(const ParameterLists& p, const ScheduleFreeConfig& c, ScheduleFreeTotals& totals);

class ScheduleFree : public Technique {
 public:
  explicit ScheduleFree(const ScheduleFreeConfig& config) : config_(config), stand_in_(config.stand_in), totals_(std::make_shared<ScheduleFreeTotals>()) {}
  std::string_view name() const override { return "schedule_free"; }
  void setup(Session& session) override;
  void after_step(Step& step) override { stand_in_.see(step); }
  void evaluate(Session& session, FunctionRef<void()> next) override;  // at x
  void serialize(Archive& archive) override;

 private:
  ScheduleFreeConfig config_;
  StandIn stand_in_;
  std::shared_ptr<ScheduleFreeTotals> totals_;  // the optimizer that was handed over counts in it
};

}  // namespace huajin
