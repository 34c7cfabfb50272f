#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/core/keyed.h"
#include "huajin/core/rng.h"
#include "huajin/system/data/data_parallel/launch.h"
#include "huajin/system/data/data_parallel/replicas.h"
#include "ranks.h"

namespace huajin {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// What rank r contributes: any rank can make it, so that each checks the sum by itself.
at::Tensor part_of(int rank, int64_t n, at::ScalarType type) {
  at::Tensor t = at::empty({n}, at::kDouble);
  fill_normal(t, mix(99, static_cast<uint64_t>(rank), static_cast<uint64_t>(n)), 1);
  return t.to(type);
}

// In rank order, wide, rounded once.
at::Tensor expected_sum(int64_t n, at::ScalarType type) {
  const auto wide = type == at::kBFloat16 || type == at::kHalf ? at::kFloat : type;
  at::Tensor sum = part_of(0, n, type).to(wide);
  for (int r = 1; r < ranks()->ranks(); ++r) sum = sum + part_of(r, n, type).to(wide);
  return sum.to(type);
}

TEST(Communicator, SumsInRankOrderInEveryType) {
  for (auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf})
    for (int64_t n : {0, 1, 2, 63, 64, 65, 1000, 300000, 1200001}) {
      at::Tensor t = part_of(ranks()->rank(), n, type);
      ranks()->sum(t);
      ASSERT_TRUE(at::equal(t, expected_sum(n, type))) << c10::toString(type) << " " << n;
    }
  at::Tensor whole = at::full({5}, int64_t{1} << 60, at::kLong);
  whole.add_(ranks()->rank());
  ranks()->sum(whole);
  const int64_t count = ranks()->ranks();
  EXPECT_EQ(whole[4].item().toLong(), static_cast<int64_t>(static_cast<uint64_t>(count) << 60) + count * (count - 1) / 2);
  at::Tensor wrong = at::zeros({3}, at::kBool);
  EXPECT_THROW(ranks()->sum(wrong), Error);
}

TEST(Communicator, SumsWhatIsNotContiguous) {
  at::Tensor t = at::zeros({6, 5}, at::kDouble), view = t.t();
  view.fill_(ranks()->rank() + 1);
  ranks()->sum(view);
  const double count = ranks()->ranks();
  EXPECT_TRUE(at::equal(t, at::full({6, 5}, count * (count + 1) / 2, at::kDouble)));
}

TEST(Communicator, NumbersMaximumAndNaN) {
  double sums[3] = {1, 0.5 * ranks()->rank(), 1e-300};
  ranks()->sum(sums);
  const double count = ranks()->ranks();
  EXPECT_EQ(sums[0], count);
  EXPECT_EQ(sums[1], count * (count - 1) / 4);
  double most[3] = {-1.0 * ranks()->rank() - 1, static_cast<double>(ranks()->rank()), ranks()->rank() == 1 ? NAN : 5};
  ranks()->maximum(most);
  EXPECT_EQ(most[0], -1);
  EXPECT_EQ(most[1], count - 1);
  EXPECT_TRUE(std::isnan(most[2]));
}

TEST(Communicator, BroadcastsAndGathers) {
  const int last = ranks()->ranks() - 1, me = ranks()->rank();
  for (int64_t n : {1, 1000, 1500000}) {
    at::Tensor t = part_of(me, n, at::kFloat);
    ranks()->broadcast(t, last);
    EXPECT_TRUE(at::equal(t, part_of(last, n, at::kFloat)));
    const at::Tensor all = ranks()->gather(part_of(me, n, at::kDouble));
    ASSERT_EQ(all.size(0), n * ranks()->ranks());
    for (int r = 0; r <= last; ++r) EXPECT_TRUE(at::equal(all.slice(0, r * n, (r + 1) * n), part_of(r, n, at::kDouble)));
  }
  for (const std::string& text : {std::string(), std::string("recipe"), std::string(3000000, 'x')}) {
    std::string bytes = me == 0 ? text : "something else";
    ranks()->broadcast(bytes, 0);
    EXPECT_EQ(bytes, text);
  }
}

TEST(Communicator, BackgroundSumsAreTheSameBits) {
  std::vector<std::vector<at::Tensor>> blocks;
  for (int b = 0; b < 4; ++b) {
    blocks.emplace_back();
    for (int64_t n : {3, 700, 17000, 1300000})
      for (auto type : {at::kFloat, at::kBFloat16, at::kDouble}) blocks.back().push_back(part_of(ranks()->rank(), n + b, type));
  }
  const int64_t before = ranks()->rounds();
  for (auto& block : blocks) {
    ranks()->start_sum(block);
    double other[1] = {1};
    ranks()->sum(other);  // foreground calls may come between
    EXPECT_EQ(other[0], ranks()->ranks());
  }
  ranks()->finish_sums();
  EXPECT_EQ(ranks()->rounds(), before + 1);
  int64_t bytes = 0, total = 0;
  for (auto& transfer : ranks()->transfers()) {
    bytes += transfer.bytes;
    EXPECT_LE(transfer.bytes, 4 << 20);
  }
  for (auto& block : blocks)
    for (auto& t : block) {
      total += static_cast<int64_t>(t.nbytes());
      EXPECT_TRUE(at::equal(t, expected_sum(t.numel(), t.scalar_type()))) << t.numel();
    }
  EXPECT_EQ(bytes, total);
}

// How long before the last block was handed over the first block's sum had ended, on the slowest rank; negative: there was no overlap.
double overlap_seconds() {
  constexpr int kBlocks = 5;
  std::vector<at::Tensor> gradients;
  const at::Tensor a = at::full({192, 192}, 0.5, at::kFloat);
  std::vector<double> handed_over;
  double flops = 0;
  for (int b = 0; b < kBlocks; ++b) {
    for (const double until = now() + 0.05; now() < until;) flops += at::mm(a, a)[0][0].item().toDouble();
    gradients.push_back(at::full({1 << 20}, 1.0, at::kFloat));
    handed_over.push_back(now());
    ranks()->start_sum({&gradients.back(), 1});
  }
  ranks()->finish_sums();
  EXPECT_GT(flops, 0);
  const auto& transfers = ranks()->transfers();
  EXPECT_EQ(transfers.size(), static_cast<size_t>(kBlocks));
  for (int b = 0; b < kBlocks; ++b) EXPECT_GE(transfers[b].started, handed_over[b]);
  for (auto& g : gradients) EXPECT_TRUE(at::equal(g, at::full({1 << 20}, static_cast<double>(ranks()->ranks()), at::kFloat)));
  return -greatest(transfers[0].finished - handed_over[kBlocks - 1]);
}

// The thread moves one block's gradients while the next block computes. On a machine with more to do than cores not every attempt shows it.
TEST(Communicator, SumsWhileTheMainThreadComputes) {
  double best = overlap_seconds();
  for (int attempt = 0; attempt < 9 && best <= 0; ++attempt) best = std::max(best, overlap_seconds());
  EXPECT_GT(best, 0) << "the first block's sum always ended after the last block's computation";
}

TEST(Communicator, ThreadsAreSharedOut) {
  double threads[1] = {static_cast<double>(at::get_num_threads())};
  ranks()->sum(threads);
  EXPECT_LE(threads[0], std::max<double>(ranks()->ranks(), std::thread::hardware_concurrency()));
  EXPECT_EQ(threads_for(8, 2), 4);
  EXPECT_EQ(threads_for(2, 4), 1);
  EXPECT_EQ(threads_for(3, 1), 3);
}

TEST(Replicas, SelfTestFindsAnotherRecipe) {
  EXPECT_NE(self_test(*ranks(), 5).find("ranks agree"), std::string::npos);
  try {
    self_test(*ranks(), ranks()->rank() == 1 ? 6 : 5);
    ADD_FAILURE() << "not noticed";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 has another recipe"), std::string::npos) << error.what();
  }
}

TEST(Replicas, DriftIsFoundAndNamed) {
  Parameter first, second;
  first.name = "first.weight";
  second.name = "second.weight";
  first.value = part_of(0, 1000, at::kFloat);
  second.value = part_of(0, 77, at::kDouble);
  Parameter* parameters[] = {&first, &second};
  check_replicas(*ranks(), parameters, 10);
  if (ranks()->rank() == 1) second.value[76].add_(1e-15);
  try {
    check_replicas(*ranks(), parameters, 20);
    ADD_FAILURE() << "not noticed";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("step 20"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("second.weight"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace huajin
