#include "huajin/optim/learning_rate/schedule_free/schedule_free.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "huajin/optim/learning_rate/each_element.h"

namespace huajin {

double ScheduleFreeTotals::share(int64_t step_now, double rate) {
  if (static_cast<double>(step_now) != step) squares += rate * rate, step = static_cast<double>(step_now);
  return squares > 0 ? rate * rate / squares : 0;
}

void schedule_free_update(const ParameterLists& p, const ScheduleFreeConfig& c, ScheduleFreeTotals& totals) {
  const double gamma = p.rate * std::sqrt(1 - std::pow(c.beta2, static_cast<double>(p.step))), share = totals.share(p.step, gamma), decay = p.decay(c.weight_decay);
  const auto one = [=, b1 = c.beta1, b2 = c.beta2, epsilon = c.epsilon](auto& y, auto g, auto& z, auto& v) {
    using T = decltype(g);
    const T x = (y - T(1 - b1) * z) / T(b1);
    v = T(b2) * v + T(1 - b2) * g * g;
    z -= T(gamma) * (g / (std::sqrt(v) + T(epsilon)) + T(decay) * y);
    y = T(1 - b1) * z + T(b1) * (T(1 - share) * x + T(share) * z);
  };
  if (each_element<2>(p, one)) return;
  update_mean_square(p.slots[1], p.g, c.beta2);
  const Tensors below = root(p.slots[1], 1, c.epsilon);
  for (size_t i = 0; i < p.w.size(); ++i) {
    const Tensor &y = p.w[i], &z = p.slots[0][i];
    const Tensor x = (y - (1 - c.beta1) * z) / c.beta1;
    z.sub_(gamma * (p.g[i] / below[i] + decay * y));
    y.copy_((1 - c.beta1) * z + c.beta1 * ((1 - share) * x + share * z));
  }
}

void ScheduleFree::setup(Session& session) {
  session.set_optimizer(std::make_unique<ListOptimizer>(session, config_.learning_rate, SlotNames{{"schedule_free.z", SlotKind::kValue}, {"schedule_free.v", SlotKind::kSecondMoment}},
                                                        [config = config_, totals = totals_](const ParameterLists& lists) { schedule_free_update(lists, config, *totals); }));
}

void ScheduleFree::evaluate(Session& session, FunctionRef<void()> next) {
  const auto put_average = [&](const Parameter& p, Tensor& y) { y.sub_(session.slot("schedule_free.z", p), 1 - config_.beta1).div_(config_.beta1); };
  stand_in_.evaluate(session, totals_->step > 0, put_average, next);
}

void ScheduleFree::serialize(Archive& archive) {
  archive.number("squares", totals_->squares);
  archive.number("step", totals_->step);
  stand_in_.serialize(archive);
}

}  // namespace huajin
