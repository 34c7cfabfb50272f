#include "huajin/data/image_source.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"

namespace huajin {
namespace {

int64_t reflected(int64_t i, int64_t n) {  // the border's pixel is not repeated
  if (i >= 0 && i < n) return i;
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
  // Convolutions on the CPU are faster with the channels innermost (small_cnn in PyTorch on a busy machine: 343 against 228 images a second); this copy is made by a loader's thread.
  if (shape.channels > 1) e.inputs = e.inputs.contiguous(at::MemoryFormat::ChannelsLast);
  e.index.id = ids;
  return e;
}

}  // namespace

Normalization normalization_of(const PackedImages& images) {
  Normalization n;
  for (const double mean : images.mean()) n.mean.push_back(static_cast<float>(mean));
  for (const double deviation : images.deviation()) n.deviation.push_back(static_cast<float>(deviation));
  return n;
}

void write_image(const uint8_t* from, const ImageShape& shape, const Normalization& normalization, const Augmentation& augmentation, uint64_t key, float* to) {
  const int64_t h = shape.height, w = shape.width;
  const bool changed = key != 0 && (augmentation.translate > 0 || augmentation.flip || augmentation.cutout > 0);
  const Motion m = changed ? choose(augmentation, shape, key) : Motion{};
  const int64_t inner = std::clamp<int64_t>(-m.dx, 0, w), end = std::clamp<int64_t>(w - m.dx, inner, w);  // columns that need no reflection
  const int64_t cut_left = std::max<int64_t>(m.left, 0), cut_right = std::min(m.left + augmentation.cutout, w);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const float mean = normalization.mean[static_cast<size_t>(c)], scale = 1 / normalization.deviation[static_cast<size_t>(c)];
    const auto normal = [&](uint8_t pixel) { return (static_cast<float>(pixel) - mean) * scale; };
    for (int64_t y = 0; y < h; ++y) {
      const uint8_t* row = from + (c * h + reflected(y + m.dy, h)) * w;
      float* out = to + (c * h + y) * w;
      for (int64_t x = 0; x < inner; ++x) out[x] = normal(row[reflected(x + m.dx, w)]);
      for (int64_t x = inner; x < end; ++x) out[x] = normal(row[x + m.dx]);
      for (int64_t x = end; x < w; ++x) out[x] = normal(row[reflected(x + m.dx, w)]);
      if (m.flip) std::reverse(out, out + w);
      if (changed && y >= m.top && y < m.top + augmentation.cutout && cut_left < cut_right) std::fill(out + cut_left, out + cut_right, 0.0f);
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
