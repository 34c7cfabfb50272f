#include "huajin/data/text_source.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

std::vector<uint32_t> counting(int64_t n) {  // token i is i: a target says where it stands
  std::vector<uint32_t> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0u);
  return tokens;
}
std::vector<int64_t> list_of(const Tensor& t) {
  const Tensor c = t.contiguous();
  return {c.const_data_ptr<int64_t>(), c.const_data_ptr<int64_t>() + c.numel()};
}
// Targets of the stream from token `at`, in order.
std::vector<int64_t> targets_of(const TextSource& source, uint64_t seed, int64_t at, int64_t rows, int64_t length) {
  const Examples e = source.load(source.ids(seed, at, rows, length), length, {}, 0, true);
  const auto x = list_of(e.inputs), y = list_of(e.targets);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[i] + 1);  // the next token
  return y;
}

TEST(TextSource, AnEpochHoldsEachOfItsPagesOnceAndNoTargetTwice) {
  for (const int64_t n : {9, 16, 17, 24, 100, 203})
    for (const int64_t length : {8, 4, 2}) {
      const TextSource source(counting(n), n, 8, "text");
      const int64_t pages = (n - 1) / 8;
      ASSERT_EQ(source.size(), pages * 8);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::map<int64_t, int> seen;
        const auto targets = targets_of(source, 5, epoch * source.size(), source.size() / length, length);
        for (int64_t target : targets) ++seen[target];
        ASSERT_EQ(static_cast<int64_t>(seen.size()), pages * 8) << "n " << n;  // so none came twice
        // the epoch's pages lie side by side: one range of tokens without a gap
        EXPECT_EQ(seen.rbegin()->first - seen.begin()->first + 1, pages * 8);
        for (size_t i = 0; i < targets.size(); i += 8) {
          EXPECT_EQ((targets[i] - seen.begin()->first) % 8, 0);
          for (size_t k = 1; k < 8; ++k) EXPECT_EQ(targets[i + k], targets[i] + static_cast<int64_t>(k)) << "a page stays whole";
        }
      }
    }
}

TEST(TextSource, EpochsDifferSeedsDifferAndBothRepeat) {
  const TextSource source(counting(203), 203, 8, "text");
  const auto stream = [&](uint64_t seed, int64_t epoch) { return targets_of(source, seed, epoch * source.size(), source.size() / 8, 8); };
  EXPECT_NE(stream(1, 0), stream(1, 1));
  EXPECT_NE(stream(1, 0), stream(2, 0));
  EXPECT_EQ(stream(1, 1), stream(1, 1));
  std::map<int64_t, int> firsts;  // phases: what an epoch leaves out at the ends, another one has
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const auto targets = stream(1, epoch);
    ++firsts[*std::min_element(targets.begin(), targets.end())];
  }
  EXPECT_GE(firsts.size(), 3u);
}

TEST(TextSource, ChangedLengthContinuesTheStream) {
  const TextSource source(counting(203), 203, 8, "text");
  const auto whole = targets_of(source, 3, 0, 24, 8);  // 192 tokens
  auto pieces = targets_of(source, 3, 0, 8, 8);        // 64 tokens as rows of 8
  const auto rest = targets_of(source, 3, 64, 32, 4);  // from token 64 as rows of 4
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  EXPECT_EQ(pieces, whole);
  // rows one by one are the rows of a batch
  const auto batch = list_of(source.ids(3, 64, 6, 4));
  for (int64_t r = 0; r < 6; ++r) EXPECT_EQ(list_of(source.ids(3, 64 + 4 * r, 1, 4))[0], batch[static_cast<size_t>(r)]);
  EXPECT_THROW(source.ids(3, 0, 1, 3), UserError);
  EXPECT_THROW(source.ids(3, 0, 1, 16), UserError);
}

TEST(TextSource, NoRowReachesIntoAnotherPageWhereverTheLengthChanged) {
  const TextSource source(counting(203), 203, 8, "text");
  for (const int64_t length : {8, 4, 2})
    for (int64_t at = 0; at < 2 * source.size(); at += 2) {
      const auto targets = targets_of(source, 7, at, 1, length), page = targets_of(source, 7, at / 8 * 8, 1, 8), next = targets_of(source, 7, at / 8 * 8 + 8, 1, 8);
      const auto& from = at % 8 + length > 8 ? next : page;
      EXPECT_TRUE(std::search(from.begin(), from.end(), targets.begin(), targets.end()) != from.end()) << "at " << at << ", length " << length;
    }
}

TEST(TextSource, FewerTokensThanARowNamesBothNumbers) {
  for (const int64_t n : {0, 1, 7, 8}) {
    try {
      TextSource source(counting(n), 300, 8, "tiny.txt");
      ADD_FAILURE() << n << " tokens taken";
    } catch (const UserError& e) {
      const std::string message = e.what();
      EXPECT_NE(message.find("tiny.txt: " + std::to_string(n) + " tokens"), std::string::npos) << message;
      EXPECT_NE(message.find("= 9;"), std::string::npos) << message;
    }
  }
  const TextSource least(counting(9), 9, 8, "tiny.txt");  // T + 1 tokens: one row
  EXPECT_EQ(targets_of(least, 1, 0, 1, 8), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(TextSource, IdsOutsideTheVocabularyAndRowsOutsideTheTextAreRefused) {
  EXPECT_THROW(TextSource(counting(20), 19, 8, "text"), UserError);
  const TextSource source(counting(20), 20, 8, "text");
  const Tensor ids = source.ids(1, 0, 1, 8);
  EXPECT_THROW(source.load(ids.add(100), 8, {}, 0, true), Error);
  EXPECT_THROW(source.load(ids.sub(100), 8, {}, 0, true), Error);
}

TEST(TextEvaluation, PredictsEveryTokenAfterTheContextOnce) {
  struct Case {
    int64_t n, length, stride, context;
  };
  for (const Case c : {Case{2, 8, 8, 0}, {2, 8, 8, 1}, {9, 8, 8, 0}, {10, 8, 8, 0}, {100, 8, 8, 0}, {100, 8, 2, 0}, {100, 8, 1, 8}, {101, 8, 3, 8}, {64, 16, 8, 16},
                       {7, 8, 4, 0}, {300, 8, 8, 5}, {300, 8, 100, 20}}) {
    const TextEvaluation set(counting(c.n), c.context, c.n, c.length, c.stride, 1234, 3);
    std::map<int64_t, int> seen;
    double mask_sum = 0;
    const int64_t stride = std::min(c.stride, c.length);
    for (int64_t b = 0; b < set.batches(); ++b) {
      const Examples e = set.batch(b);
      const auto x = list_of(e.inputs), y = list_of(e.targets);
      const Tensor contiguous = e.mask.contiguous();
      const auto* mask = contiguous.const_data_ptr<float>();
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_TRUE(mask[i] == 0 || mask[i] == 1);
        mask_sum += mask[i];
        if (mask[i] == 0) continue;
        ++seen[y[i]];
        EXPECT_EQ(y[i], x[i] + 1);
        const auto before = static_cast<int64_t>(i) % c.length + 1;  // tokens that predict it
        EXPECT_GE(before, std::min(y[i], c.length - stride + 1)) << "n " << c.n << " target " << y[i];
      }
    }
    const int64_t first = std::max<int64_t>(c.context, 1);
    EXPECT_EQ(mask_sum, static_cast<double>(c.n - first));
    ASSERT_EQ(static_cast<int64_t>(seen.size()), c.n - first) << "n " << c.n << " length " << c.length << " stride " << c.stride << " context " << c.context;
    EXPECT_EQ(seen.begin()->first, first);
    EXPECT_EQ(seen.rbegin()->first, c.n - 1);
    // the first token of all is charged the uniform distribution; with a context no token is left over
    EXPECT_DOUBLE_EQ(set.charged_nats(), c.context == 0 ? std::log(static_cast<double>(c.n)) : 0.0);
    EXPECT_EQ(set.bytes(), 1234);
  }
}

TEST(TextEvaluation, TooFewTokensIsAUserError) {
  EXPECT_THROW(TextEvaluation(counting(0), 0, 300, 8, 8, 0), UserError);
  EXPECT_THROW(TextEvaluation(counting(1), 0, 300, 8, 8, 0), UserError);
  EXPECT_THROW(TextEvaluation(counting(8), 8, 300, 8, 8, 0), UserError);
}

}  // namespace
}  // namespace huajin
