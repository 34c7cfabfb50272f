#include "huajin/optim/objective/looksam/looksam.h"

#include <gtest/gtest.h>

#include "huajin/optim/objective/test_quadratic.h"
#include "huajin/optim/objective/sam/sam.h"

namespace huajin {
namespace {

struct LooksamRun {
  Quadratic f;
  Looksam technique;
  explicit LooksamRun(const LooksamConfig& config) : technique(config) { technique.setup(f.session); }
  // One step of gradient descent; its gradient.
  Tensor step(int64_t number, double rate) {
    const Tensor g = f.gradient_of(technique, f.session.at(number, 0));
    Step s = f.session.step(f.session.at(number, 0));
    technique.update(s, [&] {
      for (Parameter* p : f.session.parameters()) p->value.sub_(p->grad, rate);
    });
    return g;
  }
  Tensor across() {
    return at::cat({f.session.slot("looksam.across", *f.session.parameters()[0]), f.session.slot("looksam.across", *f.session.parameters()[1])});
  }
};

TEST(Looksam, KeepsWhatIsAcrossTheGradientAndAddsItLater) {
  LooksamRun run({.rho = 0.3, .alpha = 0.7, .every = 3});
  Tensor across;
  size_t passes = 0;
  for (int i = 0; i < 6; ++i) {
    const Tensor w = run.f.w(), g = run.f.h.matmul(w);
    const Tensor got = run.step(i, 1e-2);
    passes += run.f.passes.size();
    if (i % 3 == 0) {
      const Tensor sharp = run.f.h.matmul(w + 0.3 * g / g.norm());
      EXPECT_LT(farthest(got, sharp), 1e-11);
      across = sharp - sharp.dot(g) / g.dot(g) * g;
      EXPECT_LT(farthest(run.across(), across), 1e-10);
      EXPECT_LT(std::abs(run.across().dot(g).item().toDouble()), 1e-9 * g.dot(g).item().toDouble());
      EXPECT_GT(across.norm().item().toDouble(), 1e-3);
    } else {
      EXPECT_LT(farthest(got, g + 0.7 * g.norm() / across.norm() * across), 1e-9 * g.norm().item().toDouble());
    }
  }
  EXPECT_EQ(passes, 8u);  // 1 + 1 / 3 a step
}

TEST(Looksam, IsSamWhenEveryStepLooks) {
  LooksamRun run({.rho = 0.2, .every = 1});
  Quadratic f;
  Sam sam({.rho = 0.2});
  EXPECT_TRUE(run.step(0, 0).equal(f.gradient_of(sam)));
  EXPECT_TRUE(run.step(1, 0).equal(f.gradient_of(sam)));
}

TEST(Looksam, KeepsNothingOfAStepThatIsSkipped) {
  LooksamRun run({.rho = 0.2, .every = 4});
  run.f.gradient_of(run.technique);
  EXPECT_EQ(run.across().abs().max().item().toDouble(), 0);
}

}  // namespace
}  // namespace huajin
