// Files of fixed-size records: MNIST's IDX pairs and CIFAR's batches.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"
#include "huajin/io/image_set.h"

namespace huajin {
namespace {

namespace fs = std::filesystem;

std::string inflated(const std::string& path) {
  const FileView file(path);
  return inflate_if_packed(file.bytes(), path, uint64_t{8} << 30);
}

struct IdxPair {
  IdxFile images, labels;
};
IdxPair read_idx_pair(const std::string& path, std::string labels_path) {
  if (!exists(labels_path)) labels_path = labels_path.ends_with(".gz") ? labels_path.substr(0, labels_path.size() - 3) : labels_path + ".gz";
  if (!exists(labels_path)) throw UserError(fmt::format("{}: its labels {} are missing; put them beside it", path, labels_path));
  const std::string a = inflated(path), b = inflated(labels_path);
  IdxPair pair{parse_idx(as_bytes(a), path), parse_idx(as_bytes(b), labels_path)};
  if (pair.images.shape.size() != 3) throw DamagedError(fmt::format("{}: {} dimensions; images have 3", path, pair.images.shape.size()));
  if (pair.images.shape[1] * pair.images.shape[2] == 0) throw DamagedError(path + ": images without pixels");
  if (pair.labels.shape.size() != 1 || pair.labels.shape[0] != pair.images.shape[0])
    throw DamagedError(fmt::format("{}: {} labels for {} images", labels_path, pair.labels.shape[0], pair.images.shape[0]));
  return pair;
}

// One image after another that go to the validation part, by a keyed order, so that neighbours (frames of one film) are not all on one side.
void move_tenth_to_the_end(ImageSet& set) {
  const std::vector<bool> validation = tenth_of_each_class(set.labels);
  ImageSet sorted;
  const auto pixels = static_cast<size_t>(set.shape.pixels());
  sorted.pixels.reserve(set.pixels.size());
  for (const bool part : {false, true}) {
    for (size_t i = 0; i < validation.size(); ++i) {
      if (validation[i] != part) continue;
      sorted.labels.push_back(set.labels[i]);
      const uint8_t* image = set.pixels.data() + i * pixels;
      sorted.pixels.insert(sorted.pixels.end(), image, image + pixels);
    }
    if (!part) set.validation_from = sorted.count();
  }
  set.labels = std::move(sorted.labels);
  set.pixels = std::move(sorted.pixels);
}

void finish(ImageSet& set, int64_t train, const std::string& where) {
  set.validation_from = train;
  if (train == 0) throw UserError(where + ": no images to train on");
  if (train == set.count()) move_tenth_to_the_end(set);
  if (set.validation_from == 0 || set.validation_from == set.count()) throw UserError(fmt::format("{}: {} images are too few to train on some and validate on others", where, set.count()));
}

// Lines of the text file NAME anywhere in the folder; else 0, 1, ...
std::vector<std::string> class_names(const std::vector<std::string>& files, std::string_view name, size_t classes) {
  std::vector<std::string> names;
  for (auto& path : files) {
    if (fs::path(path).filename().string() != name) continue;
    std::istringstream text(read_file(path, uint64_t{1} << 20));
    for (std::string line; names.size() < classes && std::getline(text, line);)
      if (!line.empty()) names.push_back(line);
    break;
  }
  for (size_t c = names.size(); c < classes; ++c) names.push_back(std::to_string(c));
  return names;
}

}  // namespace

std::vector<bool> tenth_of_each_class(const std::vector<uint32_t>& labels) {
  std::vector<std::vector<size_t>> members;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (members.size() <= labels[i]) members.resize(labels[i] + size_t{1});
    members[labels[i]].push_back(i);
  }
  std::vector<bool> chosen(labels.size(), false);
  for (size_t c = 0; c < members.size(); ++c) {
    const size_t n = members[c].size(), take = n < 2 ? 0 : std::max<size_t>(1, n / 10);
    for (size_t k = 0; k < n; ++k)
      if (permuted(mix(hash_name("validation"), c), k, n) < take) chosen[members[c][k]] = true;
  }
  return chosen;
}

// Pairs NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte; t10k, test or val: the validation part.
ImageSet read_idx(const std::string& folder, const std::vector<std::string>& files) {
  constexpr std::string_view kImages = "-images-idx3-ubyte";
  ImageSet set;
  int64_t train = 0;
  uint32_t most = 0;
  for (const bool validation : {false, true}) {
    for (auto& path : files) {
      const std::string name = fs::path(path).filename().string();
      const size_t at = path.rfind(kImages);
      if (name.find(kImages) == name.npos || (path.ends_with(".gz") && exists(path.substr(0, path.size() - 3)))) continue;
      if ((name.starts_with("t10k") || name.starts_with("test") || name.starts_with("val")) != validation) continue;
      const IdxPair pair = read_idx_pair(path, path.substr(0, at) + "-labels-idx1-ubyte" + path.substr(at + kImages.size()));
      const ImageShape shape{1, pair.images.shape[1], pair.images.shape[2]};
      if (set.count() > 0 && (shape.height != set.shape.height || shape.width != set.shape.width))
        throw UserError(fmt::format("{}: {} x {} pixels, the files before it hold {} x {}", path, shape.width, shape.height, set.shape.width, set.shape.height));
      set.shape = shape;
      set.pixels.insert(set.pixels.end(), pair.images.values.begin(), pair.images.values.end());
      for (const uint8_t label : pair.labels.values) set.labels.push_back(label), most = std::max<uint32_t>(most, label);
    }
    if (!validation) train = set.count();
  }
  finish(set, train, folder);
  set.classes = class_names(files, "classes.txt", most + 1);
  return set;
}

// Records of one label byte (CIFAR-100: coarse and fine) and 3072 bytes, planes of red, green and blue.
ImageSet read_cifar(const std::string& folder, const std::vector<std::string>& files) {
  ImageSet set;
  set.shape = {3, 32, 32};
  int64_t train = 0;
  bool any_hundred = false;
  for (const bool validation : {false, true}) {
    for (auto& path : files) {
      const std::string name = fs::path(path).filename().string();
      const bool hundred = name == "train.bin" || name == "test.bin";
      if (!hundred && !(name.starts_with("data_batch_") && name.ends_with(".bin")) && name != "test_batch.bin") continue;
      if (name.starts_with("test") != validation) continue;
      any_hundred = any_hundred || hundred;
      const FileView file(path);
      const size_t lead = hundred ? 2 : 1, record = lead + 3072;
      if (file.bytes().size() % record != 0) throw DamagedError(fmt::format("{}: {} bytes, no multiple of {}; the file is truncated", path, file.bytes().size(), record));
      for (size_t at = 0; at < file.bytes().size(); at += record) {
        set.labels.push_back(static_cast<uint32_t>(file.bytes()[at + lead - 1]));
        if (set.labels.back() >= (hundred ? 100u : 10u)) throw DamagedError(fmt::format("{}: record {} has the label {}", path, at / record, set.labels.back()));
        const auto* p = reinterpret_cast<const uint8_t*>(file.bytes().data() + at + lead);
        set.pixels.insert(set.pixels.end(), p, p + 3072);
      }
    }
    if (!validation) train = set.count();
  }
  finish(set, train, folder);
  set.classes = any_hundred ? class_names(files, "fine_label_names.txt", 100) : class_names(files, "batches.meta.txt", 10);
  return set;
}

}  // namespace huajin
