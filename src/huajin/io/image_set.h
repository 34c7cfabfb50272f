// Labelled images from what people have: folders of classes, a tar of such a tree, MNIST's IDX files, CIFAR's binary files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "huajin/io/packed_images.h"

namespace huajin {

enum class ImageLayout { kNone, kFolders, kTar, kIdx, kCifar };

// What `path` holds, without decoding: kNone if no images (then it is read as text).
ImageLayout find_image_layout(const std::string& path);

// Decodes all of it, with threads. Class folders: ROOT/CLASS/*.jpg|jpeg|png, or ROOT/train and ROOT/test (or val, validation) of such; a tar likewise, with any one folder
// above. Without a validation part a tenth of each class is taken (below). All images get the size that most have (others are
// resized) and three channels unless all are grey. Damaged ones are left out and named; DamagedError if there are more than 5 %.
// UserError: no images, one class only, IDX pairs that don't match.
ImageSet read_image_set(const std::string& path, ImageLayout layout, int threads);

// Changes when a file is added, removed, resized or touched.
std::string image_set_key(const std::string& path);

// The parts of read_image_set for MNIST and CIFAR; `files`: all below the folder, sorted.
ImageSet read_idx(const std::string& folder, const std::vector<std::string>& files);
ImageSet read_cifar(const std::string& folder, const std::vector<std::string>& files);
// True for one in ten (rounded down, but one at least) of each class that has two or more, by a keyed order: neighbours (frames of one film) are not all
// on one side.
std::vector<bool> tenth_of_each_class(const std::vector<uint32_t>& labels);

// MNIST's format: dimensions and bytes. DamagedError for a wrong magic, a size that does not fit, a truncated file.
struct IdxFile {
  std::vector<int64_t> shape;
  std::vector<uint8_t> values;
};
IdxFile parse_idx(Bytes file, const std::string& where, uint64_t most_bytes = uint64_t{8} << 30);
// gzip or as it is.
std::string inflate_if_packed(Bytes file, const std::string& where, uint64_t most_bytes);

struct TarEntry {
  std::string name;
  Bytes content;
};
// Regular files of a ustar, GNU or pax archive. DamagedError for a wrong checksum, truncation, or a name that is absolute or climbs ("..").
std::vector<TarEntry> parse_tar(Bytes file, const std::string& where);

}  // namespace huajin
