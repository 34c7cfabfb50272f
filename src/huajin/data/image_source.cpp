#include "huajin/data/image_source.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

int64_t reflected(int64_t i, int64_t n) {  // the border's pixel is not repeated
  if (n == 1) return 0;
  while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
  return i;
}

struct Motion {  // what the key says of one image
  int64_t dy = 0, dx = 0;
  bool flip = false;
  int64_t top = 0, left = 0;  // of the cut square
};
Motion choose(const Augmentation& a, const ImageShape& shape, uint64_t key) {
  Motion choice;
  const auto r = philox(key, 0), s = philox(key, 1);
  const auto span = static_cast<uint64_t>(2 * a.translate + 1);
  choice.dy = static_cast<int64_t>(r[0] * span >> 32) - a.translate;
  choice.dx = static_cast<int64_t>(r[1] * span >> 32) - a.translate;
  choice.flip = a.flip && (r[2] & 1) != 0;
  choice.top = static_cast<int64_t>(s[0] * static_cast<uint64_t>(shape.height) >> 32) - a.cutout / 2;
  choice.left = static_cast<int64_t>(s[1] * static_cast<uint64_t>(shape.width) >> 32) - a.cutout / 2;
  return choice;
}

Examples load_rows(const PackedImages& images, const Normalization& normalization, const Augmentation& augmentation, const Tensor& ids, const uint64_t* keys) {
  const ImageShape& shape = images.shape();
  const Tensor index = ids.contiguous();
  const auto* id = index.const_data_ptr<int64_t>();
  const int64_t rows = index.numel();
  Examples e;
  e.inputs = at::empty({rows, shape.channels, shape.height, shape.width}, at::kFloat);
  e.targets = at::empty({rows}, at::kLong);
  for (int64_t r = 0; r < rows; ++r) {
    if (id[r] < 0 || id[r] >= images.count()) throw Error(kExitInternal, "images: no image " + std::to_string(id[r]));
    e.targets.mutable_data_ptr<int64_t>()[r] = images.label(id[r]);
    write_image(images.pixels(id[r]), shape, normalization, augmentation, keys == nullptr ? 0 : keys[r], e.inputs.mutable_data_ptr<float>() + r * shape.pixels());
  }
  e.index.id = ids;
  return e;
}

}  // namespace

Normalization normalization_of(const PackedImages& images) {
  const ImageShape& shape = images.shape();
  const int64_t plane = shape.height * shape.width;
  Normalization n;
  for (int64_t c = 0; c < shape.channels; ++c) {
    uint64_t sum = 0, squares = 0;
    for (int64_t i = 0; i < images.validation_from(); ++i) {
      const uint8_t* p = images.pixels(i) + c * plane;
      uint64_t s = 0, q = 0;
      for (int64_t k = 0; k < plane; ++k) s += p[k], q += static_cast<uint64_t>(p[k]) * p[k];
      sum += s, squares += q;
    }
    const double count = static_cast<double>(images.validation_from() * plane), mean = static_cast<double>(sum) / count;
    n.mean.push_back(static_cast<float>(mean));
    n.deviation.push_back(static_cast<float>(std::sqrt(std::max(static_cast<double>(squares) / count - mean * mean, 1.0))));
  }
  return n;
}

void write_image(const uint8_t* from, const ImageShape& shape, const Normalization& normalization, const Augmentation& augmentation, uint64_t key, float* to) {
  const int64_t h = shape.height, w = shape.width;
  const bool changed = key != 0 && (augmentation.translate > 0 || augmentation.flip || augmentation.cutout > 0);
  const Motion choice = changed ? choose(augmentation, shape, key) : Motion{};
  for (int64_t c = 0; c < shape.channels; ++c) {
    const float mean = normalization.mean[static_cast<size_t>(c)], scale = 1 / normalization.deviation[static_cast<size_t>(c)];
    for (int64_t y = 0; y < h; ++y) {
      const uint8_t* row = from + (c * h + (changed ? reflected(y + choice.dy, h) : y)) * w;
      float* out = to + (c * h + y) * w;
      if (!changed) {
        for (int64_t x = 0; x < w; ++x) out[x] = (static_cast<float>(row[x]) - mean) * scale;
        continue;
      }
      for (int64_t x = 0; x < w; ++x) {
        const int64_t source = reflected(x + choice.dx, w);
        out[x] = (static_cast<float>(row[choice.flip ? w - 1 - source : source]) - mean) * scale;
      }
      if (augmentation.cutout > 0 && y >= choice.top && y < choice.top + augmentation.cutout)
        for (int64_t x = std::max<int64_t>(choice.left, 0); x < std::min(choice.left + augmentation.cutout, w); ++x) out[x] = 0;
    }
  }
}

ImageSource::ImageSource(std::shared_ptr<const PackedImages> images, Augmentation augmentation, uint64_t seed)
    : images_(std::move(images)), augmentation_(augmentation), seed_(seed), normalization_(normalization_of(*images_)) {}

Tensor ImageSource::ids(uint64_t seed, int64_t at, int64_t rows, int64_t) const {
  Tensor out = at::empty({rows}, at::kLong);
  auto* to = out.mutable_data_ptr<int64_t>();
  const int64_t n = size();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t position = at + r;
    const uint64_t key = mix(seed, static_cast<uint64_t>(Purpose::kOrder), static_cast<uint64_t>(position / n));
    to[r] = static_cast<int64_t>(permuted(key, static_cast<uint64_t>(position % n), static_cast<uint64_t>(n)));
  }
  return out;
}

Examples ImageSource::load(const Tensor& ids, int64_t, const Tensor& noise, int64_t draw, bool training) const {
  std::vector<uint64_t> keys;
  if (training) {
    const Tensor streams = noise.contiguous();
    for (int64_t r = 0; r < streams.numel(); ++r) {
      const uint64_t key = mix(seed_, static_cast<uint64_t>(Purpose::kAugment), static_cast<uint64_t>(streams.const_data_ptr<int64_t>()[r]), static_cast<uint64_t>(draw));
      keys.push_back(key == 0 ? 1 : key);
    }
  }
  return load_rows(*images_, normalization_, augmentation_, ids, training ? keys.data() : nullptr);
}

ImageEvaluation::ImageEvaluation(std::shared_ptr<const PackedImages> images, int64_t rows)
    : images_(std::move(images)), normalization_(normalization_of(*images_)), rows_(rows) {}

int64_t ImageEvaluation::batches() const { return (images_->count() - images_->validation_from() + rows_ - 1) / rows_; }

Examples ImageEvaluation::batch(int64_t i) const {
  const int64_t begin = images_->validation_from() + i * rows_, rows = std::min(rows_, images_->count() - begin);
  Tensor ids = at::empty({rows}, at::kLong);
  for (int64_t r = 0; r < rows; ++r) ids.mutable_data_ptr<int64_t>()[r] = begin + r;
  return load_rows(*images_, normalization_, Augmentation{}, ids, nullptr);
}

}  // namespace huajin
