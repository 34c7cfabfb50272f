// JPEG and PNG files to pixels. Hostile files are refused by their header: nothing is allocated for an image beyond the cap.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "huajin/io/file.h"

namespace huajin {

struct Image {
  int64_t height = 0, width = 0, channels = 0;  // 1 or 3
  std::vector<uint8_t> pixels;                  // [height, width, channels]
};

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
  auto operator<=>(const ImageSize&) const = default;
};

constexpr int64_t kMostPixels = int64_t{64} << 20;  // of one image

// By its first bytes. DamagedError naming `where` for what is neither, truncated, corrupt (the decoder's warnings count) or larger than `most_pixels`.
Image decode_image(Bytes file, const std::string& where, int64_t most_pixels = kMostPixels);
// The header alone: what decode_image will give. DamagedError likewise, as far as the header shows it.
ImageSize image_size(Bytes file, const std::string& where, int64_t most_pixels = kMostPixels);
bool looks_like_image(Bytes file);

// Area average where it shrinks, bilinear where it grows; the same size is a copy.
Image resize_image(const Image& image, int64_t height, int64_t width);
// Grey to RGB by repetition, RGB to grey by BT.601 luma.
Image with_channels(const Image& image, int64_t channels);

}  // namespace huajin
