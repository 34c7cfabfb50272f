// Packed images as a source of rows (core/source.h).
#pragma once
#include <memory>

#include "huajin/core/source.h"
#include "huajin/io/packed_images.h"

namespace huajin {

// Label-preserving transforms of training images. Each image's are keyed by (seed, its stream, draw): the same for any number of workers, ranks and
// micro-batches; another in each epoch.
struct Augmentation {
  int64_t translate = 0;  // up to so many pixels each way, the border reflected
  bool flip = false;      // left and right, every other time
  int64_t cutout = 0;     // side of a square that is set to the mean, clipped at the border (DeVries & Taylor, 2017)
};

// Mean and deviation of each channel over the training part; pixels enter the model as (x - mean) / deviation.
struct Normalization {
  std::vector<float> mean, deviation;
};
Normalization normalization_of(const PackedImages& images);

// One image: normalised, transformed. from [C, H, W], to [C, H, W]. `key`: 0 numbers drawn, the image as it is.
void write_image(const uint8_t* from, const ImageShape& shape, const Normalization& normalization, const Augmentation& augmentation, uint64_t key, float* to);

class ImageSource : public Source {
 public:
  ImageSource(std::shared_ptr<const PackedImages> images, Augmentation augmentation, uint64_t seed);
  bool classifies() const override { return true; }
  int64_t size() const override { return images_->validation_from(); }
  int64_t classes() const override { return static_cast<int64_t>(images_->classes().size()); }
  int64_t units_per_row(int64_t) const override { return 1; }
  Tensor ids(uint64_t seed, int64_t at, int64_t rows, int64_t length) const override;  // an epoch is a permutation of all
  Examples load(const Tensor& ids, int64_t length, const Tensor& noise, int64_t draw, bool training) const override;

 private:
  std::shared_ptr<const PackedImages> images_;
  Augmentation augmentation_;
  uint64_t seed_;
  Normalization normalization_;
};

// The validation part, as it is.
class ImageEvaluation : public EvaluationSet {
 public:
  ImageEvaluation(std::shared_ptr<const PackedImages> images, int64_t rows = 250);
  int64_t batches() const override;
  Examples batch(int64_t i) const override;

 private:
  std::shared_ptr<const PackedImages> images_;
  Normalization normalization_;
  int64_t rows_;
};

}  // namespace huajin
