// Images of one size, decoded once, in one file that is opened by mmap:
//
//   "huajimg2"  length of the header, uint64   header, JSON   padding to 64 bytes   labels uint32 [n]   pixels uint8 [n, C, H, W]
//
// The header holds the XXH3-128 of the labels, of every MiB of pixels, and of itself without that member: damage is found at open.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "huajin/io/file.h"

namespace huajin {

struct ImageShape {
  int64_t channels = 0, height = 0, width = 0;
  int64_t pixels() const { return channels * height * width; }
};

// Decoded images in memory, before they are packed.
struct ImageSet {
  ImageShape shape;
  std::vector<std::string> classes;
  std::vector<uint32_t> labels;   // [n]
  std::vector<uint8_t> pixels;    // [n, C, H, W]
  int64_t validation_from = 0;    // images from here on are the validation part
  std::vector<std::string> damaged;  // what was left out, and why
  int64_t resized = 0;               // images that had another size
  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

class PackedImages {
 public:
  // DamagedError if it is no such file, truncated, or a page's hash differs.
  explicit PackedImages(const std::string& path);
  int64_t count() const { return count_; }
  int64_t validation_from() const { return validation_from_; }
  const ImageShape& shape() const { return shape_; }
  const std::vector<std::string>& classes() const { return classes_; }
  uint32_t label(int64_t i) const;
  const uint8_t* pixels(int64_t i) const { return pixels_ + i * shape_.pixels(); }  // [C, H, W]
  const std::string& key() const { return key_; }  // of what it was made from
  int64_t damaged() const { return damaged_; }     // images that were left out
  int64_t resized() const { return resized_; }     // images that had another size
  const std::vector<std::string>& first_damaged() const { return first_damaged_; }  // names and reasons of the first five
  // Over the training part, one a channel.
  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& deviation() const { return deviation_; }

 private:
  std::unique_ptr<FileView> view_;
  int64_t count_ = 0, validation_from_ = 0, damaged_ = 0, resized_ = 0;
  ImageShape shape_;
  std::vector<std::string> classes_, first_damaged_;
  std::vector<double> mean_, deviation_;
  std::string key_;
  const std::byte* labels_ = nullptr;
  const uint8_t* pixels_ = nullptr;
};

// Written atomically. WriteError if the disk is full.
void write_packed_images(const std::string& path, const ImageSet& set, const std::string& key);

}  // namespace huajin
