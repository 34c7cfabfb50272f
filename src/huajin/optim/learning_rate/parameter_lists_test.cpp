#include "huajin/optim/learning_rate/parameter_lists.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <atomic>

#include "conformance/bare_session.h"
#include "conformance/optimizer_checks.h"
#include "huajin/optim/learning_rate/nadamw/nadamw.h"

namespace huajin {
namespace {

void add_parameters(BareSession& session) {  // larger and smaller than a piece, one of them with an odd end
  int64_t i = 0;
  for (const int64_t size : {3, 50001, 1, 16384, 77, 0, 20000}) {
    Parameter& p = session.add("p" + std::to_string(i), at::arange(size, at::kDouble).sin());
    p.decay = i++ % 2 == 0;
    p.grad = at::arange(size, at::kDouble).cos();
  }
}

TEST(ParameterLists, PiecesGiveWhatWholeListsGive) {
  const NadamwConfig config{.learning_rate = 0.1, .weight_decay = 0.3};
  const SlotNames slots{{"m", SlotKind::kGradient}, {"v", SlotKind::kSecondMoment}};
  BareSession session, whole;
  add_parameters(session);
  add_parameters(whole);
  set_list_optimizer(session, config, slots, Reach::kElement, nadamw_update);
  set_list_optimizer(whole, config, slots, Reach::kTensor, nadamw_update);
  take_steps(session, 3);
  take_steps(whole, 3);
  for (size_t i = 0; i < session.parameters().size(); ++i) {
    const Parameter &a = *session.parameters()[i], &b = *whole.parameters()[i];
    if (a.value.numel() == 0) continue;
    EXPECT_LT((a.value - b.value).abs().max().item<double>(), 1e-14) << a.name;
    EXPECT_LT((session.slot("v", a) - whole.slot("v", b)).abs().max().item<double>(), 1e-14) << a.name;
  }
}

TEST(ParameterLists, TheNumberOfThreadsChangesNoBit) {
  Tensor made[2];
  const int before = at::get_num_threads();
  for (const int i : {0, 1}) {
    at::set_num_threads(i == 0 ? 1 : 3);
    BareSession session;
    add_parameters(session);
    Nadamw({.learning_rate = 0.1}).setup(session);
    take_steps(session, 3);
    made[i] = session.parameters()[1]->value.clone();
  }
  at::set_num_threads(before);
  EXPECT_TRUE(made[0].equal(made[1]));
}

TEST(ParameterLists, EveryReachSaysThatTheWeightsChanged) {  // working copies in bfloat16 are renewed by version
  for (const Reach reach : {Reach::kElement, Reach::kTensor, Reach::kAll}) {
    BareSession session;
    Parameter& p = session.add("w", at::ones({2, 2}, at::kFloat));
    session.optimizer = std::make_unique<ListOptimizer>(session, 1.0, SlotNames{}, reach, [](const ParameterLists&) {});
    const auto version = p.value._version();
    take_steps(session, 1);
    EXPECT_GT(p.value._version(), version);
  }
}

TEST(ParameterLists, HandsOutGroupsRateAndStep) {
  BareSession session;
  session.add("matrix", at::ones({3, 3}, at::kFloat));
  session.add("bias", at::ones({3}, at::kFloat)).decay = false;
  for (const Reach reach : {Reach::kElement, Reach::kTensor, Reach::kAll}) {
    std::atomic<int> calls = 0, decaying = 0, tensors = 0;
    ListOptimizer optimizer(session, 0.5, {}, reach, [&](const ParameterLists& p) {
      ++calls;
      tensors += static_cast<int>(p.w.size());
      if (p.decays && reach != Reach::kAll) decaying += static_cast<int>(p.w.size());
      EXPECT_EQ(p.rate, 0.125);
      EXPECT_EQ(p.step, 8);
      EXPECT_EQ(p.decay(3), p.decays ? 3 : 0);
      EXPECT_EQ(p.g[0].abs().sum().item<float>(), 0);  // none arrived
    });
    optimizer.begin(session.step(session.at(7, 0)), 0.25);
    optimizer.step(session.parameters());
    EXPECT_EQ(calls, reach == Reach::kAll ? 1 : 2);
    EXPECT_EQ(tensors, 2);
    EXPECT_EQ(decaying, reach == Reach::kAll ? 0 : 1);
    EXPECT_EQ(optimizer.learning_rate(), 0.125);
  }
}

TEST(ParameterLists, ReadsGradientsThatAreNotContiguous) {
  BareSession session, straight;
  const Tensor g = at::arange(6, at::kDouble).reshape({3, 2}).t();
  for (BareSession* s : {&session, &straight}) {
    s->add("w", at::ones({2, 3}, at::kDouble)).grad = s == &session ? g : g.contiguous();
    Nadamw({}).setup(*s);
    take_steps(*s, 2);
  }
  EXPECT_TRUE(session.parameters()[0]->value.equal(straight.parameters()[0]->value));
}

TEST(ParameterLists, ReadsWeightsThatAreNotContiguous) {
  BareSession session, straight;
  for (BareSession* s : {&session, &straight}) {
    Tensor w = at::ones({3, 2}, at::kDouble).t();
    s->add("w", s == &session ? w : w.contiguous()).grad = at::arange(6, at::kDouble).reshape({2, 3});
    Nadamw({}).setup(*s);
    take_steps(*s, 2);
  }
  EXPECT_LT((session.parameters()[0]->value - straight.parameters()[0]->value).abs().max().item<double>(), 1e-15);
}

}  // namespace
}  // namespace huajin
