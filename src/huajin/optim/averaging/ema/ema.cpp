#include "huajin/optim/averaging/ema/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>
#include <cmath>

namespace huajin {
namespace {

struct PutBack {  // copies on the way out, whatever the way
  std::vector<Tensor> to, from;
  ~PutBack() {
    at::NoGradGuard off;
    at::_foreach_copy_(to, from);
  }
};

}  // namespace

double ema_update(const std::vector<Tensor>& average, const std::vector<Tensor>& w, double decay, double total) {
  total = decay * total + 1;
  if (!average.empty()) at::_foreach_lerp_(average, w, 1 / total);
  return total;
}

void Ema::after_step(Step& step) {
  at::NoGradGuard off;
  std::vector<Tensor> average, w;
  for (Parameter* p : step.session.parameters()) {
    average.push_back(step.session.slot("ema.average", *p));
    w.push_back(p->value);
  }
  const double passed = fraction_ < 0 ? 0 : std::max(0.0, step.progress.fraction - fraction_);
  total_ = ema_update(average, w, config_.decay > 0 ? config_.decay : std::exp2(-passed / config_.half_life), total_);
  fraction_ = step.progress.fraction;
}

void Ema::evaluate(Session& session, FunctionRef<void()> next) {
  if (total_ == 0) return next();
  PutBack back;
  std::vector<Tensor> average;
  for (Parameter* p : session.parameters()) {
    back.to.push_back(p->value);
    back.from.push_back(p->value.clone());
    average.push_back(session.slot("ema.average", *p));
  }
  {
    at::NoGradGuard off;
    at::_foreach_copy_(back.to, average);
  }
  next();
}

void Ema::serialize(Archive& archive) {
  archive.number("total", total_);
  archive.number("fraction", fraction_);
}

}  // namespace huajin
