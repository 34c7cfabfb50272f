#include "huajin/io/image_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "huajin/core/errors.h"
#include "huajin/core/rng.h"
#include "huajin/io/hash.h"
#include "huajin/io/image_decode.h"

namespace huajin {
namespace {

namespace fs = std::filesystem;

struct Item {  // an image before it is decoded
  std::string name, label;
  bool validation = false;
  Bytes content;     // of a tar
  std::string path;  // of a folder
};

bool image_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.ends_with(".jpg") || name.ends_with(".jpeg") || name.ends_with(".png");
}
bool validation_name(const std::string& name) { return name == "test" || name == "val" || name == "valid" || name == "validation"; }

// ".../train/cat/1.jpg" -> cat, training; ".../cat/1.jpg" -> cat.
bool classify(const std::string& name, Item& item) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    if (end > at) parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() < 2 || !image_name(parts.back()) || parts.back().starts_with(".")) return false;
  item.name = name;
  item.label = parts[parts.size() - 2];
  item.validation = parts.size() > 2 && validation_name(parts[parts.size() - 3]);
  return true;
}

std::vector<std::string> files_of(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file(error)) names.push_back(it->path().string());
  if (error) throw UserError(fmt::format("{}: {}", root, error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Image> decode_all(const std::vector<Item>& items, int threads, std::vector<std::string>& wrong) {
  std::vector<Image> images(items.size());
  wrong.assign(items.size(), "");
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < items.size(); i = next++) {
      try {
        if (!items[i].path.empty()) {
          const FileView file(items[i].path);
          images[i] = decode_image(file.bytes(), items[i].path);
        } else {
          images[i] = decode_image(items[i].content, items[i].name);
        }
      } catch (const Error& error) {
        wrong[i] = error.what();
      }
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (auto& thread : pool) thread.join();
  return images;
}

// A tenth of each class, by a keyed order, so that neighbours (frames of one film) are not all on one side.
void split_tenth(std::vector<size_t>& order, const std::vector<Item>& items, std::vector<bool>& validation) {
  std::map<std::string, std::vector<size_t>> by_class;
  for (size_t i : order) by_class[items[i].label].push_back(i);
  for (auto& [label, members] : by_class)
    for (size_t k = 0; k < members.size(); ++k)
      if (permuted(hash_name(label), k, members.size()) % 10 == 9) validation[members[k]] = true;
}

ImageSet assemble(const std::vector<Item>& items, int threads, const std::string& where) {
  std::vector<std::string> wrong;
  std::vector<Image> images = decode_all(items, threads, wrong);
  ImageSet set;
  std::map<std::pair<int64_t, int64_t>, int64_t> sizes;
  std::set<std::string> names;
  std::vector<size_t> good;
  bool grey = true;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!wrong[i].empty()) {
      set.damaged.push_back(wrong[i]);
      continue;
    }
    good.push_back(i);
    sizes[{images[i].height, images[i].width}]++;
    grey = grey && images[i].channels == 1;
    names.insert(items[i].label);
  }
  if (set.damaged.size() * 20 > items.size())
    throw DamagedError(fmt::format("{}: {} of {} images are damaged, more than 5 %; the first: {}", where, set.damaged.size(), items.size(), set.damaged[0]));
  if (names.size() < 2) throw UserError(fmt::format("{}: {} class; put the images of each class into a folder of its own, two classes at least", where, names.size()));
  const auto size = std::max_element(sizes.begin(), sizes.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
  set.shape = {grey ? 1 : 3, size.first, size.second};
  set.classes.assign(names.begin(), names.end());
  std::vector<bool> validation(items.size(), false);
  for (size_t i : good) validation[i] = items[i].validation;
  if (std::none_of(validation.begin(), validation.end(), [](bool v) { return v; })) split_tenth(good, items, validation);
  std::stable_partition(good.begin(), good.end(), [&](size_t i) { return !validation[i]; });
  set.pixels.resize(good.size() * static_cast<size_t>(set.shape.pixels()));
  size_t to = 0;
  for (size_t k = 0; k < good.size(); ++k) {
    const size_t i = good[k];
    if (!validation[i]) set.validation_from = static_cast<int64_t>(k) + 1;
    set.labels.push_back(static_cast<uint32_t>(std::lower_bound(set.classes.begin(), set.classes.end(), items[i].label) - set.classes.begin()));
    const Image image = resize_image(with_channels(images[i], set.shape.channels), set.shape.height, set.shape.width);
    for (int64_t c = 0; c < set.shape.channels; ++c)
      for (int64_t p = 0; p < set.shape.height * set.shape.width; ++p) set.pixels[to++] = image.pixels[static_cast<size_t>(p * set.shape.channels + c)];
    images[i] = Image();
  }
  if (set.validation_from == 0 || set.validation_from == set.count()) throw UserError(where + ": no images to train on, or none to validate; both train and test need some");
  return set;
}

std::string read_packed(const std::string& path) {
  const FileView file(path);
  return inflate_if_packed(file.bytes(), path, uint64_t{8} << 30);
}

// Pairs NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte; t10k or test: validation.
ImageSet read_idx(const std::string& folder) {
  ImageSet set;
  std::vector<std::pair<IdxFile, IdxFile>> parts[2];
  for (auto& path : files_of(folder)) {
    const size_t at = path.find("-images-idx3-ubyte");
    if (at == path.npos) continue;
    std::string labels = path;
    labels.replace(at, 18, "-labels-idx1-ubyte");
    if (!exists(labels)) throw UserError(fmt::format("{}: its labels {} are missing", path, labels));
    const std::string a = read_packed(path), b = read_packed(labels);
    IdxFile images = parse_idx(as_bytes(a), path), classes = parse_idx(as_bytes(b), labels);
    if (images.shape.size() != 3) throw DamagedError(fmt::format("{}: {} dimensions; images have 3", path, images.shape.size()));
    if (classes.shape.size() != 1 || classes.shape[0] != images.shape[0])
      throw DamagedError(fmt::format("{}: {} labels for {} images", labels, classes.shape[0], images.shape[0]));
    const std::string name = fs::path(path).filename().string();
    parts[name.starts_with("t10k") || name.starts_with("test") ? 1 : 0].emplace_back(std::move(images), std::move(classes));
  }
  if (parts[0].empty()) throw UserError(folder + ": no train-images-idx3-ubyte with its labels");
  uint32_t most = 0;
  for (auto& part : parts)
    for (auto& [images, labels] : part) {
      const ImageShape shape{1, images.shape[1], images.shape[2]};
      if (set.count() > 0 && shape.pixels() != set.shape.pixels()) throw UserError(folder + ": images of different sizes");
      set.shape = shape;
      set.pixels.insert(set.pixels.end(), images.values.begin(), images.values.end());
      for (uint8_t label : labels.values) set.labels.push_back(label), most = std::max<uint32_t>(most, label);
      if (&part == &parts[0]) set.validation_from = set.count();
    }
  for (uint32_t c = 0; c <= most; ++c) set.classes.push_back(std::to_string(c));
  if (parts[1].empty()) set.validation_from = set.count() - set.count() / 10;
  return set;
}

// Records of one label byte (CIFAR-100: coarse and fine) and 3072 bytes, planes of red, green and blue.
ImageSet read_cifar(const std::string& folder) {
  ImageSet set;
  set.shape = {3, 32, 32};
  uint32_t most = 0;
  for (const bool validation : {false, true})
    for (auto& path : files_of(folder)) {
      const std::string name = fs::path(path).filename().string();
      const bool hundred = name == "train.bin" || name == "test.bin", test = name.starts_with("test");
      if ((!hundred && !(name.starts_with("data_batch_") || name == "test_batch.bin")) || !name.ends_with(".bin") || test != validation) continue;
      const FileView file(path);
      const size_t lead = hundred ? 2 : 1, record = lead + 3072;
      if (file.bytes().size() % record != 0) throw DamagedError(fmt::format("{}: {} bytes, no multiple of {}; the file is truncated", path, file.bytes().size(), record));
      for (size_t at = 0; at < file.bytes().size(); at += record) {
        set.labels.push_back(static_cast<uint32_t>(file.bytes()[at + lead - 1]));
        most = std::max(most, set.labels.back());
        const auto* p = reinterpret_cast<const uint8_t*>(file.bytes().data() + at + lead);
        set.pixels.insert(set.pixels.end(), p, p + 3072);
      }
      if (!validation) set.validation_from = set.count();
    }
  if (set.validation_from == 0) throw UserError(folder + ": no data_batch_1.bin (CIFAR-10) or train.bin (CIFAR-100)");
  if (set.validation_from == set.count()) set.validation_from -= set.count() / 10;
  for (uint32_t c = 0; c <= most; ++c) set.classes.push_back(std::to_string(c));
  return set;
}

}  // namespace

ImageLayout find_image_layout(const std::string& path) {
  if (!exists(path)) return ImageLayout::kNone;
  if (!is_folder(path)) return path.ends_with(".tar") ? ImageLayout::kTar : ImageLayout::kNone;
  int64_t images = 0, others = 0;
  for (auto& file : files_of(path)) {
    const std::string name = fs::path(file).filename().string();
    if (name.find("-images-idx3-ubyte") != name.npos) return ImageLayout::kIdx;
    if (name == "data_batch_1.bin" || name == "train.bin") return ImageLayout::kCifar;
    Item item;
    (classify(file, item) ? images : others)++;
  }
  return images > others ? ImageLayout::kFolders : ImageLayout::kNone;
}

ImageSet read_image_set(const std::string& path, ImageLayout layout, int threads) {
  if (layout == ImageLayout::kIdx) return read_idx(path);
  if (layout == ImageLayout::kCifar) return read_cifar(path);
  std::vector<Item> items;
  if (layout == ImageLayout::kTar) {
    const FileView file(path);
    for (auto& entry : parse_tar(file.bytes(), path)) {
      Item item;
      item.content = entry.content;
      if (classify(entry.name, item)) items.push_back(std::move(item));
    }
    if (items.empty()) throw UserError(path + ": an archive without CLASS/*.jpg or .png");
    return assemble(items, threads, path);
  }
  for (auto& name : files_of(path)) {
    Item item;
    item.path = name;
    if (classify(name, item)) items.push_back(std::move(item));
  }
  if (items.empty()) throw UserError(path + ": no images; put those of each class into a folder of its own");
  return assemble(items, threads, path);
}

std::string image_set_key(const std::string& path) {
  Hasher hasher;
  hasher.update(std::string_view("huajin images 1"));
  const auto add = [&](const std::string& name) {
    std::error_code error;
    hasher.update(name);
    hasher.update(static_cast<int64_t>(file_size(name)));
    hasher.update(static_cast<int64_t>(fs::last_write_time(name, error).time_since_epoch().count()));
  };
  if (!is_folder(path)) add(path);
  else
    for (auto& name : files_of(path)) add(name);
  return hasher.hex();
}

}  // namespace huajin
