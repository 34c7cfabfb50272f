#include "huajin/core/keyed.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/core/keyed_kernels.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

using at::Tensor;

Tensor filled(int64_t n, uint64_t key, at::ScalarType dtype, void (*fill)(Tensor&, uint64_t, double), double scale) {
  Tensor t = at::empty({n}, dtype);
  fill(t, key, scale);
  return t;
}

// The contract of keyed_kernels.h, element by element, with libm.
double naive(uint64_t key, int64_t e, bool normal) {
  const auto words = philox(key, static_cast<uint64_t>(e / 64 * 16 + e % 2 * 8 + e % 16 / 2));
  const int slot = static_cast<int>(e / 16 % 4);
  if (!normal) return (words[slot] + 0.5) * 0x1.0p-31 - 1;
  const double radius = std::sqrt(-2 * std::log((words[slot / 2 * 2] + 0.5) * 0x1.0p-32));
  const double angle = words[slot / 2 * 2 + 1];
  const double turned = std::floor(angle * 0x1.0p-30) * M_PI / 2 + (std::fmod(angle, 0x1.0p30) + 0.5) * 0x1.0p-30 * M_PI / 2 - M_PI / 4;
  return radius * (slot % 2 == 0 ? std::cos(turned) : std::sin(turned));
}

TEST(Keyed, EqualsTheContractElementByElement) {
  for (uint64_t key : {uint64_t{0}, mix(1, 2)}) {
    const Tensor z = filled(1000, key, at::kDouble, fill_normal, 1), u = filled(1000, key, at::kDouble, fill_uniform, 2);
    for (int64_t e = 0; e < 1000; ++e) {
      ASSERT_NEAR(z.const_data_ptr<double>()[e], naive(key, e, true), 2e-15) << e;
      ASSERT_DOUBLE_EQ(u.const_data_ptr<double>()[e], 2 * naive(key, e, false)) << e;
    }
  }
}

TEST(Keyed, SinglePrecisionIsDoubleRounded) {
  for (auto fill : {fill_normal, fill_uniform})
    EXPECT_TRUE(at::equal(filled(777, 5, at::kFloat, fill, 0.02), filled(777, 5, at::kDouble, fill, 0.02).to(at::kFloat)));
}

TEST(Keyed, ThreadsAndLengthDontChangeBits) {
  const int threads = at::get_num_threads();
  const int64_t n = 200003;
  at::set_num_threads(1);
  const Tensor one = filled(n, 8, at::kFloat, fill_normal, 1);
  Tensor square = at::empty({70, 70}, at::kFloat);
  fill_orthogonal(square, 8, 1);
  const std::vector<uint64_t> keys{1, 2, 3};
  const Tensor mask = keep_mask(keys.data(), 3, n / 3, 0.9, at::kFloat);
  for (int count : {2, 3, 4}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(filled(n, 8, at::kFloat, fill_normal, 1), one));
    EXPECT_TRUE(at::equal(filled(n - 57, 8, at::kFloat, fill_normal, 1), one.slice(0, 0, n - 57)));
    Tensor again = at::empty({70, 70}, at::kFloat);
    fill_orthogonal(again, 8, 1);
    EXPECT_TRUE(at::equal(again, square));
    EXPECT_TRUE(at::equal(keep_mask(keys.data(), 3, n / 3, 0.9, at::kFloat), mask));
  }
  at::set_num_threads(threads);
}

TEST(Keyed, InstructionSetsDontChangeBits) {
  std::vector<double> first, z(1000);
  std::vector<uint32_t> first_mask, mask(999);
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    keyed_normal(3, 0, 1000, 0.1, z.data());
    keyed_mask<uint32_t>(3, 999, 1000000007, 1, mask.data());
    if (first.empty()) first = z, first_mask = mask;
    EXPECT_EQ(first, z) << hwy::TargetName(target);
    EXPECT_EQ(first_mask, mask) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Keyed, NormalHasItsMomentsAndShape) {
  const int64_t n = 400000;
  const Tensor t = filled(n, 42, at::kDouble, fill_normal, 1);
  const double* z = t.const_data_ptr<double>();
  double m[5] = {};
  constexpr int kBins = 64;
  std::vector<double> bins(kBins);
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 1; k <= 4; ++k) m[k] += std::pow(z[i], k) / static_cast<double>(n);
    bins[static_cast<int>(std::min(0.5 * std::erfc(-z[i] / std::sqrt(2.0)) * kBins, kBins - 1.0))] += 1;
  }
  const double root = std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(m[1], 0, 5 / root);
  EXPECT_NEAR(m[2], 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(m[3], 0, 5 * std::sqrt(15.0) / root);
  EXPECT_NEAR(m[4], 3, 5 * std::sqrt(96.0) / root);
  double chi = 0;
  for (double count : bins) chi += (count - 6250.0) * (count - 6250.0) / 6250.0;
  EXPECT_LT(chi, 63 + 5 * std::sqrt(126.0));
  EXPECT_GT(chi, 63 - 5 * std::sqrt(126.0));
  for (int64_t lag : {1, 8, 16, 32, 64}) {
    double sum = 0;
    for (int64_t i = 0; i + lag < n; ++i) sum += z[i] * z[i + lag];
    EXPECT_NEAR(sum / static_cast<double>(n), 0, 5 / root) << "lag " << lag;
  }
}

TEST(Keyed, UniformIsUniform) {
  const Tensor t = filled(320000, 43, at::kFloat, fill_uniform, 0.5);
  std::vector<double> bins(32);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double u = t.const_data_ptr<float>()[i];
    ASSERT_LE(std::abs(u), 0.5);
    bins[static_cast<int>(std::min((u + 0.5) * 32, 31.0))] += 1;
  }
  double chi = 0;
  for (double count : bins) chi += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi, 31 + 5 * std::sqrt(62.0));
}

TEST(Keyed, OrthogonalIsOrthonormalTimesGain) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{64, 64}, {32, 100}, {100, 32}, {1, 7}}) {
    Tensor w = at::empty({m, n}, at::kDouble);
    fill_orthogonal(w, 17, 1.5);
    const Tensor product = m <= n ? at::matmul(w, w.t()) : at::matmul(w.t(), w);
    EXPECT_LT((product - 2.25 * at::eye(std::min(m, n), at::kDouble)).abs().max().item().toDouble(), 1e-11) << m << " x " << n;
  }
  // Haar: the first entry of a random rotation of the plane is the cosine of a uniform angle, so its square averages 1/2.
  double sum = 0;
  for (uint64_t key = 0; key < 4000; ++key) {
    Tensor w = at::empty({2, 2}, at::kDouble);
    fill_orthogonal(w, key, 1);
    sum += std::pow(w.const_data_ptr<double>()[0], 2);
  }
  EXPECT_NEAR(sum / 4000, 0.5, 5 * std::sqrt(0.125 / 4000));
}

TEST(Keyed, MaskDependsOnRowKeyAndElementAlone) {
  const std::vector<uint64_t> keys{11, 22, 33}, other{33, 11};
  const Tensor mask = keep_mask(keys.data(), 3, 130, 0.7, at::kFloat), moved = keep_mask(other.data(), 2, 130, 0.7, at::kFloat);
  EXPECT_TRUE(at::equal(mask[2], moved[0]));
  EXPECT_TRUE(at::equal(mask[0], moved[1]));
  EXPECT_FALSE(at::equal(mask[0], mask[1]));
  EXPECT_TRUE(at::equal(keep_mask(keys.data(), 3, 67, 0.7, at::kFloat), mask.slice(1, 0, 67)));
  for (int64_t e = 0; e < 130; ++e) {
    const auto words = philox(22, static_cast<uint64_t>(e / 64 * 16 + e % 2 * 8 + e % 16 / 2));
    EXPECT_EQ(mask[1][e].item().toFloat(), words[e / 16 % 4] < 0.7 * 0x1.0p32 ? static_cast<float>(1 / 0.7) : 0.0f);
  }
}

TEST(Keyed, MaskKeepsTheShareInEveryPrecision) {
  const uint64_t key = 5;
  const Tensor mask = keep_mask(&key, 1, 500000, 0.9, at::kDouble);
  EXPECT_NEAR(mask.mean().item().toDouble(), 1, 5 * std::sqrt(0.1 / 0.9 / 500000));
  for (auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const Tensor same = keep_mask(&key, 1, 500000, 0.9, dtype);
    EXPECT_EQ(same.scalar_type(), dtype);
    EXPECT_TRUE(at::equal(same, mask.to(dtype)));
  }
  EXPECT_EQ(keep_mask(&key, 1, 10000, 1.0, at::kFloat).min().item().toFloat(), 1);
  EXPECT_EQ(keep_mask(&key, 0, 100, 0.5, at::kFloat).numel(), 0);
  EXPECT_THROW(keep_mask(&key, 1, 10, 0, at::kFloat), Error);
  EXPECT_THROW(keep_mask(&key, 1, 10, 0.5, at::kInt), Error);
}

}  // namespace
}  // namespace huajin
