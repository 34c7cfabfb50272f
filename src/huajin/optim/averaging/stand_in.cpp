#include "huajin/optim/averaging/stand_in.h"

#include <ATen/core/grad_mode.h>

#include "huajin/core/put_back.h"

namespace huajin {

void StandIn::see(const Step& step) {
  rows_ = static_cast<double>(step.batch.rows());
  length_ = static_cast<double>(step.batch.length);
}

void StandIn::evaluate(Session& session, bool ready, FunctionRef<void(const Parameter&, Tensor& value)> put, FunctionRef<void()> next) const {
  PutBack weights;
  if (ready) {
    at::NoGradGuard off;
    for (Parameter* p : session.parameters()) {
      weights.keep(p->value);
      put(*p, p->value);
    }
  }
  if (config_.statistics == 0 || rows_ == 0) return next();
  session.with_fresh_statistics(Draw{static_cast<int64_t>(rows_), static_cast<int64_t>(length_), 1}, config_.statistics, next);
}

void StandIn::serialize(Archive& archive) {
  if (config_.statistics == 0) return;
  archive.number("rows", rows_);
  archive.number("length", length_);
}

WeightsAndSlot weights_and_slot(Session& session, std::string_view slot) {
  WeightsAndSlot both;
  for (Parameter* p : session.parameters()) {
    both.weights.push_back(p->value);
    both.slot.push_back(session.slot(slot, *p));
  }
  return both;
}

}  // namespace huajin
