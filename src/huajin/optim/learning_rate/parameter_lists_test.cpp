#include "huajin/optim/learning_rate/parameter_lists.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/optimizer_checks.h"
#include "huajin/optim/learning_rate/each_element.h"
#include "huajin/optim/learning_rate/nadamw/nadamw.h"

namespace huajin {
namespace {

void add_parameters(BareSession& session) {  // larger and smaller than what a core takes at a time, one of them with an odd end
  int64_t i = 0;
  for (const int64_t size : {3, 200001, 1, 65536, 77, 0, 20000}) {
    Parameter& p = session.add("p" + std::to_string(i), at::arange(size, at::kDouble).sin());
    p.decay = i++ % 2 == 0;
    p.grad = at::arange(size, at::kDouble).cos();
  }
}

// Weights that aren't contiguous take the operations on lists, which other devices take; the rest takes loops.
TEST(ParameterLists, OperationsOnListsEqualTheFormulas) {
  for (const char* name : {"adagrad", "adan", "lamb", "lars", "lion", "nadamw", "radam", "rmsprop"})
    expect_golden_optimizer(name, at::kDouble, 1e-12, true);
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
  for (const Reach reach : {Reach::kTensor, Reach::kAll}) {
    BareSession session;
    Parameter& p = session.add("w", at::ones({2, 2}, at::kFloat));
    session.optimizer = std::make_unique<ListOptimizer>(
        session, 1.0, SlotNames{}, [](const ParameterLists&) {}, reach);
    const auto version = p.value._version();
    take_steps(session, 1);
    EXPECT_GT(p.value._version(), version);
  }
}

TEST(ParameterLists, HandsOutGroupsRateAndStep) {
  BareSession session;
  session.add("matrix", at::ones({3, 3}, at::kFloat));
  session.add("bias", at::ones({3}, at::kFloat)).decay = false;
  for (const Reach reach : {Reach::kTensor, Reach::kAll}) {
    int calls = 0, decaying = 0, tensors = 0;
    const auto look = [&](const ParameterLists& p) {
      ++calls;
      tensors += static_cast<int>(p.w.size());
      if (p.decays && reach != Reach::kAll) decaying += static_cast<int>(p.w.size());
      EXPECT_EQ(p.rate, 0.125);
      EXPECT_EQ(p.step, 8);
      EXPECT_EQ(p.decay(3), p.decays ? 3 : 0);
      EXPECT_EQ(p.g[0].abs().sum().item<float>(), 0);  // none arrived
    };
    ListOptimizer optimizer(session, 0.5, {}, look, reach);
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

TEST(EachElement, VisitsEachElementOnce) {
  for (const int threads : {1, 3}) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    BareSession session;
    add_parameters(session);
    ParameterLists lists;
    for (Parameter* p : session.parameters()) lists.w.push_back(p->value), lists.g.push_back(p->grad);
    EXPECT_TRUE(each_element<0>(lists, [](auto& w, auto g) { w = w * w + g * g; }));
    for (const Tensor& w : lists.w) EXPECT_EQ(((w - 1).abs() < 1e-15).sum().item<int64_t>(), w.numel());  // sin^2 + cos^2
    at::set_num_threads(before);
  }
}

TEST(EachElement, LeavesWhatItCannotDo) {
  ParameterLists lists;
  lists.w = {at::ones({4, 4}, at::kFloat).t(), at::ones({3, 4}, at::kFloat).t()};
  lists.g = lists.w;
  EXPECT_FALSE(can_loop(lists));
  lists.w = lists.g = {at::ones({3}, at::kFloat), at::ones({3}, at::kDouble)};
  EXPECT_FALSE(can_loop(lists));
  lists.w = lists.g = {at::ones({3}, at::kBFloat16)};
  EXPECT_FALSE(can_loop(lists));
}

}  // namespace
}  // namespace huajin
