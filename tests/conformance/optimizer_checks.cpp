#include "optimizer_checks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

namespace huajin {
namespace {

class HalfSession : public BareSession {  // norms of the tensors that two of them hold together
 public:
  explicit HalfSession(std::barrier<>& meeting) : meeting_(meeting) {}
  HalfSession* other = nullptr;
  Tensor norms(FunctionRef<Tensor(const Parameter&)> slice) override {
    squares_ = BareSession::norms(slice).square();
    meeting_.arrive_and_wait();
    const Tensor all = (squares_ + other->squares_).sqrt();
    meeting_.arrive_and_wait();  // nobody goes on to the next norms before both have read
    return all;
  }

 private:
  std::barrier<>& meeting_;
  Tensor squares_;
};

void add_part(BareSession& session, int64_t begin, int64_t end) {
  for (const auto* name : {"matrix", "bias"}) {
    Parameter& p = session.add(name, (1 + at::arange(20, at::kDouble).cos()).slice(0, begin, end).clone());
    p.decay = p.index == 0;
  }
}

void take_part_steps(BareSession& session, int64_t begin, int64_t end) {
  const Tensor n = at::arange(20, at::kDouble);
  for (int64_t step = 0; step < 3; ++step) {
    for (Parameter* p : session.parameters()) p->grad = (n * (n * (step + 1 + p->index)).sin()).slice(0, begin, end).clone();
    take_steps(session, 1, step);
  }
}

}  // namespace

void take_steps(BareSession& session, int64_t steps, int64_t first) {
  for (int64_t step = first; step < first + steps; ++step) {
    session.optimizer->begin(session.step(session.at(step, 0)), 1);
    session.optimizer->step(session.parameters());
  }
}

void expect_same_steps(BareSession& one, BareSession& other, double tolerance, double scale, bool decays) {
  for (BareSession* session : {&one, &other}) session->add("w", scale * (2 + at::arange(12, at::kDouble).cos().reshape({3, 4}))).decay = decays;
  for (int64_t step = 0; step < 8; ++step) {
    for (BareSession* session : {&one, &other}) {
      session->parameters()[0]->grad = (at::arange(12, at::kDouble) * (step + 1)).sin().reshape({3, 4});
      take_steps(*session, 1, step);
    }
    EXPECT_LE((one.parameters()[0]->value - other.parameters()[0]->value).abs().max().item<double>(), tolerance) << step;
  }
}

void expect_halves_as_whole(const std::function<void(Session&)>& setup) {
  BareSession whole;
  setup(whole);
  add_part(whole, 0, 20);
  take_part_steps(whole, 0, 20);
  std::barrier<> meeting(2);
  HalfSession low(meeting), high(meeting);
  low.other = &high, high.other = &low;
  for (HalfSession* half : {&low, &high}) {
    setup(*half);
    add_part(*half, half == &low ? 0 : 7, half == &low ? 7 : 20);
  }
  std::thread worker([&] { take_part_steps(low, 0, 7); });
  take_part_steps(high, 7, 20);
  worker.join();
  for (size_t i = 0; i < 2; ++i) {
    const Tensor made = at::cat({low.parameters()[i]->value, high.parameters()[i]->value});
    EXPECT_LT((made - whole.parameters()[i]->value).abs().max().item<double>(), 1e-12) << i;
  }
}

}  // namespace huajin
