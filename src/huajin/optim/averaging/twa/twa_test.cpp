#include "huajin/optim/averaging/twa/twa.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"

namespace huajin {
namespace {

std::vector<Tensor> twa_weights(uint64_t seed) {
  std::vector<Tensor> w{at::zeros({3, 5}, at::kDouble), at::zeros({7}, at::kDouble)};
  fill_normal(w[0], 2 * seed, 1), fill_normal(w[1], 2 * seed + 1, 1);
  return w;
}
Tensor as_vector(const std::vector<Tensor>& w) { return at::cat({w[0].flatten(), w[1].flatten()}); }

TEST(Twa, ProjectsOntoTheSpanOfTheSnapshots) {  // against an orthonormal basis, which the paper makes by Gram-Schmidt
  Snapshots snapshots{twa_weights(1), twa_weights(2), twa_weights(3)};
  std::vector<Tensor> columns;
  for (auto& s : snapshots) columns.push_back(as_vector(s));
  const Tensor basis = std::get<0>(at::linalg_qr(at::stack(columns, 1)));
  const std::vector<Tensor> step = twa_weights(9);
  const Tensor wanted = basis.matmul(basis.t().matmul(as_vector(step)));
  std::vector<Tensor> projected = twa_weights(0);
  combine(projected, snapshots, span_coefficients(snapshots, gram_inverse(snapshots), step));
  EXPECT_LE((as_vector(projected) - wanted).abs().max().item<double>(), 1e-12);
  // A snapshot twice adds no direction.
  snapshots.push_back(twa_weights(2));
  combine(projected, snapshots, span_coefficients(snapshots, gram_inverse(snapshots), step));
  EXPECT_LE((as_vector(projected) - wanted).abs().max().item<double>(), 1e-8);
}

// Descent on |w - target|^2 / 2 whose gradient moves on even outside of the span.
struct Quadratic {
  BareSession session;
  Parameter* p;
  Tensor target = at::arange(6, at::kDouble) / 5;
  Tensor velocity = at::zeros({6}, at::kDouble);
  Quadratic() : p(&session.add("w", at::full({6}, 2.0, at::kDouble))) {}
  double loss() const { return 0.5 * (p->value - target).square().sum().item<double>(); }
  void run(Technique& technique, int from, int to, int total, double rate, double momentum) {
    for (int i = from; i < to; ++i) {
      Step step = session.step(session.at(i, static_cast<double>(i) / total));
      technique.update(step, [&] {
        Tensor noise = at::zeros({6}, at::kDouble);
        fill_normal(noise, static_cast<uint64_t>(i), i < total / 2 ? 1 : 0);
        velocity = momentum * velocity + (p->value - target) + noise;
        p->value.sub_(velocity * rate);
      });
      step.progress.step = i + 1;
      technique.after_step(step);
    }
  }
};

TEST(Twa, StartsAtTheEqualAverageAndEndsAtTheBestOfTheSpan) {
  Quadratic q;
  Twa twa({.from = 0.2, .start = 0.4, .snapshots = 3});
  twa.setup(q.session);
  q.run(twa, 0, 81, 200, 0.2, 0);  // the update that begins at 0.4 is the 80th
  std::vector<Tensor> snapshots;
  for (int i = 0; i < 3; ++i) snapshots.push_back(q.session.slot("twa.snapshot" + std::to_string(i), *q.p));
  EXPECT_FALSE(snapshots[0].equal(snapshots[1]));
  const Tensor mean = at::stack(snapshots).mean(0);
  EXPECT_LE((q.p->value - mean).abs().max().item<double>(), 1e-14) << "with fixed equal coefficients it is SWA";
  const double swa = q.loss();
  q.run(twa, 100, 200, 200, 0.2, 0);  // no noise
  const Tensor basis = std::get<0>(at::linalg_qr(at::stack(snapshots, 1)));
  const Tensor best = basis.matmul(basis.t().matmul(q.target));
  EXPECT_LE((q.p->value - best).abs().max().item<double>(), 1e-8);
  EXPECT_LT(q.loss(), swa);
}

// Momentum of projected gradients is the projection of momentum: what the optimizer sees is the paper's projected SGD.
TEST(Twa, WithMomentumIsProjectedDescent) {
  Quadratic q;
  Twa twa({.from = 0.2, .start = 0.4, .snapshots = 2});
  twa.setup(q.session);
  q.run(twa, 0, 81, 200, 0.1, 0);
  const Tensor w0 = q.session.slot("twa.snapshot0", *q.p), w1 = q.session.slot("twa.snapshot1", *q.p);
  const Tensor basis = std::get<0>(at::linalg_qr(at::stack({w0, w1}, 1)));
  q.velocity.zero_();
  Tensor w = q.p->value.clone(), v = at::zeros({6}, at::kDouble);
  for (int i = 100; i < 130; ++i) {
    v = 0.9 * v + basis.matmul(basis.t().matmul(w - q.target));
    w = w - 0.1 * v;
    q.run(twa, i, i + 1, 200, 0.1, 0.9);
    EXPECT_LE((q.p->value - w).abs().max().item<double>(), 1e-10) << i;
  }
}

TEST(Twa, RefusesToStartBeforeItHasSnapshots) { EXPECT_THROW(Twa({.from = 0.5, .start = 0.5}), UserError); }

}  // namespace
}  // namespace huajin
