#include "huajin/data/image_source.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "huajin/core/rng.h"

namespace huajin {
namespace {

struct Packed {  // n images of 3 x 8 x 8 in memory and in a file
  explicit Packed(int64_t n) {
    set.shape = {3, 8, 8};
    set.classes = {"a", "b", "c"};
    for (int64_t i = 0; i < n; ++i) {
      set.labels.push_back(static_cast<uint32_t>(i % 3));
      for (int64_t k = 0; k < set.shape.pixels(); ++k) set.pixels.push_back(static_cast<uint8_t>(philox(7, static_cast<uint64_t>(i * 1000 + k))[0]));
    }
    set.validation_from = n - n / 5;
    std::string pattern = (std::filesystem::temp_directory_path() / "huajin-images-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    write_packed_images(folder + "/x", set, "key");
    images = std::make_shared<const PackedImages>(folder + "/x");
  }
  ~Packed() { std::filesystem::remove_all(folder); }
  ImageSet set;
  std::string folder;
  std::shared_ptr<const PackedImages> images;
};
const Normalization kPlain{{0, 0, 0}, {1, 1, 1}};

std::vector<float> written(const uint8_t* from, const ImageShape& shape, const Augmentation& a, uint64_t key) {
  std::vector<float> to(static_cast<size_t>(shape.pixels()));
  write_image(from, shape, kPlain, a, key, to.data());
  return to;
}

TEST(ImageSource, EveryEpochIsAnotherOrderOfEveryTrainingImage) {
  const Packed p(50);
  const ImageSource source(p.images, {}, 1);
  const Tensor stream = source.ids(3, 0, 120, 1);
  const auto* id = stream.const_data_ptr<int64_t>();
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(std::set<int64_t>(id + 40 * epoch, id + 40 * (epoch + 1)).size(), 40u) << epoch;
  EXPECT_LT(*std::max_element(id, id + 120), 40);
  EXPECT_FALSE(std::equal(id, id + 40, id + 40));
  EXPECT_TRUE(at::equal(source.ids(3, 35, 10, 1), stream.slice(0, 35, 45))) << "a row depends on its position alone";
}

// The reference follows the formula, pixel by pixel: reflected translation, then mirror.
TEST(ImageSource, TranslationAndMirrorEqualTheFormula) {
  const Packed p(1);
  const ImageShape& shape = p.set.shape;
  const Augmentation a{.translate = 2, .flip = true};
  std::set<std::tuple<int, int, bool>> seen;
  for (uint64_t key = 1; key <= 900; ++key) {
    const std::vector<float> got = written(p.set.pixels.data(), shape, a, key);
    int found = 0;
    for (int dy = -2; dy <= 2; ++dy)
      for (int dx = -2; dx <= 2; ++dx)
        for (const bool flip : {false, true}) {
          bool same = true;
          for (int c = 0; c < 3; ++c)
            for (int y = 0; y < 8; ++y)
              for (int x = 0; x < 8; ++x) {
                const int fx = flip ? 7 - x : x;
                const int sy = 7 - std::abs(7 - std::abs(y + dy)), sx = 7 - std::abs(7 - std::abs(fx + dx));
                same = same && got[static_cast<size_t>((c * 8 + y) * 8 + x)] == static_cast<float>(p.set.pixels[static_cast<size_t>((c * 8 + sy) * 8 + sx)]);
              }
          if (same) ++found, seen.emplace(dy, dx, flip);
        }
    ASSERT_EQ(found, 1) << key;
  }
  EXPECT_EQ(seen.size(), 50u) << "all 5 x 5 translations, mirrored and not";
}

TEST(ImageSource, MirroredTwiceIsTheImage) {
  const Packed p(1);
  const Augmentation a{.flip = true};
  uint64_t key = 1;
  while ((philox(key, 0)[2] & 1) == 0) ++key;
  const std::vector<float> once = written(p.set.pixels.data(), p.set.shape, a, key);
  EXPECT_NE(once, written(p.set.pixels.data(), p.set.shape, {}, 0));
  const std::vector<uint8_t> bytes(once.begin(), once.end());
  EXPECT_EQ(written(bytes.data(), p.set.shape, a, key), written(p.set.pixels.data(), p.set.shape, {}, 0));
}

// Chi-square against uniform; 99.9 % quantiles: 24 degrees of freedom 51.2, one 10.8.
TEST(ImageSource, TranslationsAreUniform) {
  const ImageShape shape{1, 16, 16};
  const Normalization plain{{0}, {1}};
  std::vector<uint8_t> image(256);
  for (size_t i = 0; i < 256; ++i) image[i] = static_cast<uint8_t>(i);
  std::vector<int> count(25);
  std::vector<float> to(256);
  const int n = 20000;
  int flips = 0;
  for (int i = 0; i < n; ++i) {
    write_image(image.data(), shape, plain, {.translate = 2, .flip = true}, mix(11, static_cast<uint64_t>(i)) | 1, to.data());
    const bool flip = to[8 * 16 + 8] < to[8 * 16 + 7];  // columns grow to the right
    const int at = static_cast<int>(to[8 * 16 + static_cast<size_t>(flip ? 7 : 8)]);  // source of (8, 8)
    count.at(static_cast<size_t>((at / 16 - 6) * 5 + at % 16 - 6))++;
    flips += flip;
  }
  double chi = 0;
  for (const int c : count) chi += (c - n / 25.0) * (c - n / 25.0) / (n / 25.0);
  EXPECT_LT(chi, 51.2);
  EXPECT_LT(4.0 * (flips - n / 2.0) * (flips - n / 2.0) / n, 10.8);
}

TEST(ImageSource, CutoutSetsOneSquareToTheMean) {
  const Packed p(1);
  std::set<size_t> sizes;
  for (uint64_t key = 1; key < 200; ++key) {
    const std::vector<float> got = written(std::vector<uint8_t>(192, 9).data(), p.set.shape, {.cutout = 4}, key);
    int64_t top = 8, left = 8, bottom = -1, right = -1, zeros = 0;
    for (int64_t y = 0; y < 8; ++y)
      for (int64_t x = 0; x < 8; ++x) {
        const float v = got[static_cast<size_t>(y * 8 + x)];
        ASSERT_TRUE(v == 0 || v == 9);
        if (v == 0) ++zeros, top = std::min(top, y), bottom = std::max(bottom, y), left = std::min(left, x), right = std::max(right, x);
      }
    ASSERT_EQ(zeros, (bottom - top + 1) * (right - left + 1)) << "a full rectangle";
    ASSERT_LE(std::max(bottom - top, right - left), 3);
    ASSERT_TRUE(std::equal(got.begin(), got.begin() + 64, got.begin() + 64)) << "in every channel";
    sizes.insert(static_cast<size_t>(zeros));
  }
  EXPECT_TRUE(sizes.count(16));
}

// Content depends on (seed, stream, draw) only: not on what else is loaded with it, so not on workers, ranks or micro-batches.
TEST(ImageSource, ContentIsIndependentOfTheCut) {
  const Packed p(50);
  const ImageSource source(p.images, {.translate = 2, .flip = true, .cutout = 3}, 5);
  const Tensor ids = source.ids(1, 0, 32, 1);
  const Tensor noise = at::arange(100, 132, at::kLong);
  const Examples whole = source.load(ids, 1, noise, 9, true);
  for (int64_t begin = 0; begin < 32; begin += 8) {
    const Examples part = source.load(ids.slice(0, begin, begin + 8), 1, noise.slice(0, begin, begin + 8), 9, true);
    EXPECT_TRUE(at::equal(part.inputs, whole.inputs.slice(0, begin, begin + 8)));
    EXPECT_TRUE(at::equal(part.targets, whole.targets.slice(0, begin, begin + 8)));
  }
  EXPECT_FALSE(at::equal(source.load(ids, 1, noise, 10, true).inputs, whole.inputs)) << "another draw";
  EXPECT_FALSE(at::equal(source.load(ids, 1, noise + 1, 9, true).inputs, whole.inputs)) << "another stream";
  EXPECT_FALSE(at::equal(ImageSource(p.images, {.translate = 2, .flip = true, .cutout = 3}, 6).load(ids, 1, noise, 9, true).inputs, whole.inputs)) << "another seed";
  EXPECT_TRUE(at::equal(source.load(ids, 1, noise, 9, false).inputs, ImageSource(p.images, {}, 5).load(ids, 1, noise, 9, true).inputs)) << "not while evaluating";
}

TEST(ImageSource, TrainingPartHasMeanZeroAndDeviationOne) {
  const Packed p(50);
  const ImageSource source(p.images, {}, 1);
  const Tensor x = source.load(source.ids(1, 0, 40, 1), 1, at::arange(40, at::kLong), 0, false).inputs.to(at::kDouble);
  EXPECT_LT(x.mean({0, 2, 3}).abs().max().item<double>(), 1e-6);
  EXPECT_LT((x.var({0, 2, 3}, false) - 1).abs().max().item<double>(), 1e-5);
}

TEST(ImageEvaluation, EveryValidationImageOnceAsItIs) {
  const Packed p(50);
  const ImageEvaluation evaluation(p.images, 4);
  ASSERT_EQ(evaluation.batches(), 3);
  int64_t next = 40;
  const ImageSource source(p.images, {}, 1);
  for (int64_t b = 0; b < 3; ++b) {
    const Examples e = evaluation.batch(b);
    for (int64_t r = 0; r < e.targets.numel(); ++r, ++next) EXPECT_EQ(e.targets.const_data_ptr<int64_t>()[r], next % 3);
    EXPECT_TRUE(at::equal(e.inputs, source.load(at::arange(next - e.targets.numel(), next, at::kLong), 1, {}, 0, false).inputs));
  }
  EXPECT_EQ(next, 50);
}

}  // namespace
}  // namespace huajin
