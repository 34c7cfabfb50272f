// The loader: what it returns depends on ids alone (gate G-8; pain C7, G2, I8).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "huajin/core/loader.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

class Numbers : public Source {  // image i is the number i; training adds the draw's noise
 public:
  bool classifies() const override { return true; }
  int64_t size() const override { return 37; }
  int64_t classes() const override { return 10; }
  int64_t units_per_row(int64_t) const override { return 1; }
  Tensor ids(uint64_t seed, int64_t at, int64_t rows, int64_t) const override {
    Tensor out = at::empty({rows}, at::kLong);
    for (int64_t r = 0; r < rows; ++r)
      out[r] = static_cast<int64_t>(permuted(mix(seed, static_cast<uint64_t>((at + r) / 37)), static_cast<uint64_t>((at + r) % 37), 37));
    return out;
  }
  Examples load(const Tensor& ids, int64_t, const Tensor& noise, int64_t draw, bool) const override {
    Examples e;
    e.inputs = at::empty({ids.numel()}, at::kDouble);
    for (int64_t r = 0; r < ids.numel(); ++r)
      e.inputs[r] = static_cast<double>(ids[r].item<int64_t>()) + uniform(mix(9, static_cast<uint64_t>(noise[r].item<int64_t>()), static_cast<uint64_t>(draw)), 0);
    e.targets = ids % 10;
    return e;
  }
};

std::vector<double> stream(int64_t workers, bool announce, bool evaluate_between) {
  const Numbers source;
  Loader loader(source, 5, workers);
  std::vector<double> seen;
  Progress progress;
  for (int64_t draw = 0; draw < 30; ++draw, progress.draw++, progress.examples += 4) {
    const Batch batch = loader.draw(Draw{4, 0, 1}, progress);
    if (announce) {
      Progress next = progress;
      next.draw++, next.examples += 4;
      loader.announce(loader.draw(Draw{4, 0, 1}, next), next.draw);
      loader.announce(loader.draw(Draw{3, 0, 1}, next), next.draw);  // and one that nobody asks for
    }
    if (evaluate_between) source.load(batch.id, 0, batch.id, 99, false);
    const Examples e = loader.load(batch, draw);
    for (int64_t r = 0; r < 4; ++r) seen.push_back(e.inputs[r].item<double>());
  }
  return seen;
}

TEST(Loader, ContentDoesNotDependOnWorkersOrEvaluation) {
  const auto plain = stream(0, false, false);
  EXPECT_EQ(plain, stream(1, true, false));
  EXPECT_EQ(plain, stream(4, true, true));
  EXPECT_EQ(plain, stream(2, false, true));
}

TEST(Loader, AnEpochHasEachExampleOnceAndTheNextAnotherOrder) {
  const Numbers source;
  std::vector<int64_t> first, second;
  const Tensor ids = source.ids(5, 0, 74, 0);
  for (int64_t i = 0; i < 37; ++i) first.push_back(ids[i].item<int64_t>()), second.push_back(ids[37 + i].item<int64_t>());
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::unique(first.begin(), first.end()), first.end());
}

TEST(Loader, PartnersAreLoadedByIdWhateverWasAnnounced) {
  const Numbers source;
  Loader loader(source, 5, 1);
  Batch batch = loader.draw(Draw{3, 0, 1}, Progress{});
  loader.announce(batch, 0);
  batch.partner = at::tensor({7, 8, 9}, at::kLong);
  const Examples e = loader.load(batch, 0);
  for (int64_t r = 0; r < 3; ++r) EXPECT_EQ(static_cast<int64_t>(e.partner_inputs[r].item<double>()), 7 + r);
}

TEST(Loader, AnErrorOfAWorkerReachesTheStep) {
  struct Broken : Numbers {
    Examples load(const Tensor&, int64_t, const Tensor&, int64_t, bool) const override { throw std::runtime_error("unreadable"); }
  };
  const Broken source;
  Loader loader(source, 5, 1);
  const Batch batch = loader.draw(Draw{3, 0, 1}, Progress{});
  loader.announce(batch, 0);
  EXPECT_THROW(loader.load(batch, 0), std::runtime_error);
}

}  // namespace
}  // namespace huajin
