#include "huajin/io/image_set.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "huajin/core/errors.h"
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

// Name below the root: "train/cat/1.jpg" -> cat, training; "cat/1.jpg" -> cat. Hidden files and folders are none.
bool classify(const std::string& name, Item& item) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    if (end > at) parts.push_back(name.substr(at, end - at));
    if (end > at + 1 && parts.back()[0] == '.') return false;
    at = end + 1;
  }
  if (parts.size() < 2 || !image_name(parts.back())) return false;
  item.name = name;
  item.label = parts[parts.size() - 2];
  item.validation = parts.size() > 2 && validation_name(parts[parts.size() - 3]);
  return true;
}

std::vector<std::string> files_of(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error, broken_link;
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file(broken_link)) names.push_back(it->path().string());
  if (error) throw UserError(fmt::format("{}: {}", root, error.message()));
  std::sort(names.begin(), names.end());
  return names;
}
std::string below(const std::string& root, const std::string& path) { return path.substr(std::min(root.size(), path.size())); }

// f(i) for all i; each thread takes the next one. What f throws as Error is left in `wrong`.
void each(size_t n, int threads, std::vector<std::string>& wrong, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < n; i = next++) {
      if (!wrong[i].empty()) continue;
      try {
        f(i);
      } catch (const Error& error) {
        wrong[i] = error.what();
      } catch (const std::bad_alloc&) {
        wrong[i] = "not enough memory to decode image " + std::to_string(i);
      }
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (auto& thread : pool) thread.join();
}

template <class F>
auto with_bytes(const Item& item, F f) {
  if (item.path.empty()) return f(item.content, item.name);
  const FileView file(item.path);
  return f(file.bytes(), item.path);
}

// What most images are; three channels unless all are grey.
ImageShape common_shape(const std::vector<ImageSize>& sizes, const std::vector<std::string>& wrong) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  bool grey = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!wrong[i].empty()) continue;
    counts[{sizes[i].height, sizes[i].width}]++;
    grey = grey && sizes[i].channels == 1;
  }
  if (counts.empty()) return {};
  const auto most = std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
  return {grey ? 1 : 3, most.first, most.second};
}

void check_damaged(const std::vector<std::string>& wrong, const std::string& where) {
  const auto damaged = [](const std::string& text) { return !text.empty(); };
  const auto count = static_cast<size_t>(std::count_if(wrong.begin(), wrong.end(), damaged));
  if (count * 20 > wrong.size())
    throw DamagedError(fmt::format("{}: {} of {} images are damaged, more than 5 %; the first: {}", where, count, wrong.size(), *std::find_if(wrong.begin(), wrong.end(), damaged)));
}

void check_memory(size_t images, const ImageShape& shape, const std::string& where) {
  const double need = static_cast<double>(images) * static_cast<double>(shape.pixels());
  const double have = 0.7 * static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (need > have)
    throw UserError(fmt::format("{}: {} images of {} x {} take {:.1f} GB decoded, {:.1f} GB of memory can be used; scale them down first", where, images, shape.width, shape.height, need / 1e9, have / 1e9));
}

// [h, w, c] -> [c, h, w]
void write_planes(const Image& image, uint8_t* to) {
  const int64_t plane = image.height * image.width;
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t p = 0; p < plane; ++p) to[c * plane + p] = image.pixels[static_cast<size_t>(p * image.channels + c)];
}

std::vector<std::string> labels_of(const std::vector<Item>& items, const std::vector<std::string>& wrong) {
  std::vector<std::string> names;
  for (size_t i = 0; i < items.size(); ++i)
    if (wrong[i].empty()) names.push_back(items[i].label);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Training part first. `items` in their order within each part.
void sort_by_part(std::vector<Item>& items) {
  if (std::none_of(items.begin(), items.end(), [](const Item& i) { return i.validation; })) {
    std::map<std::string, uint32_t> numbers;
    for (auto& item : items) numbers.emplace(item.label, 0);
    uint32_t next = 0;
    for (auto& [name, number] : numbers) number = next++;
    std::vector<uint32_t> labels;
    for (auto& item : items) labels.push_back(numbers[item.label]);
    const std::vector<bool> chosen = tenth_of_each_class(labels);
    for (size_t i = 0; i < items.size(); ++i) items[i].validation = chosen[i];
  }
  std::stable_partition(items.begin(), items.end(), [](const Item& i) { return !i.validation; });
}

ImageSet assemble(std::vector<Item> items, int threads, const std::string& where) {
  sort_by_part(items);
  std::vector<std::string> wrong(items.size());
  std::vector<ImageSize> sizes(items.size());
  each(items.size(), threads, wrong, [&](size_t i) { sizes[i] = with_bytes(items[i], [](Bytes b, const std::string& name) { return image_size(b, name); }); });
  check_damaged(wrong, where);
  ImageSet set;
  set.shape = common_shape(sizes, wrong);
  check_memory(items.size(), set.shape, where);
  const auto pixels = static_cast<size_t>(set.shape.pixels());
  set.pixels.resize(items.size() * pixels);
  each(items.size(), threads, wrong, [&](size_t i) {
    const Image image = with_bytes(items[i], [](Bytes b, const std::string& name) { return decode_image(b, name); });
    write_planes(resize_image(with_channels(image, set.shape.channels), set.shape.height, set.shape.width), set.pixels.data() + i * pixels);
  });
  check_damaged(wrong, where);
  set.classes = labels_of(items, wrong);
  if (set.classes.size() < 2) throw UserError(fmt::format("{}: {} class; put the images of each class into a folder of its own, two classes at least", where, set.classes.size()));
  for (size_t i = 0; i < items.size(); ++i) {  // close the gaps that damaged ones left
    if (!wrong[i].empty()) {
      set.damaged.push_back(wrong[i]);
      continue;
    }
    if (sizes[i].height != set.shape.height || sizes[i].width != set.shape.width) ++set.resized;
    const size_t to = set.labels.size();
    if (to != i) std::memmove(set.pixels.data() + to * pixels, set.pixels.data() + i * pixels, pixels);
    set.labels.push_back(static_cast<uint32_t>(std::lower_bound(set.classes.begin(), set.classes.end(), items[i].label) - set.classes.begin()));
    if (!items[i].validation) set.validation_from = set.count();
  }
  set.pixels.resize(set.labels.size() * pixels);
  if (set.validation_from == 0 || set.validation_from == set.count())
    throw UserError(fmt::format("{}: {} images to train on and {} to validate; both parts need some", where, set.validation_from, set.count() - set.validation_from));
  return set;
}

bool holds_cifar(const std::vector<std::string>& files) {
  for (auto& path : files) {
    const std::string name = fs::path(path).filename().string();
    if (name == "data_batch_1.bin") return true;
    // Token shards are called so too: CIFAR-100 has records of 3,074 bytes and a test file beside it.
    if (name == "train.bin" && file_size(path) % 3074 == 0 && exists(path.substr(0, path.size() - 9) + "test.bin")) return true;
  }
  return false;
}

}  // namespace

ImageLayout find_image_layout(const std::string& path) {
  if (!exists(path)) return ImageLayout::kNone;
  if (!is_folder(path)) return path.ends_with(".tar") ? ImageLayout::kTar : ImageLayout::kNone;
  int64_t images = 0, others = 0;
  const std::vector<std::string> files = files_of(path);
  for (auto& file : files) {
    Item item;
    if (file.find("-images-idx3-ubyte", file.rfind('/')) != file.npos) return ImageLayout::kIdx;
    (classify(below(path, file), item) ? images : others)++;
  }
  if (holds_cifar(files)) return ImageLayout::kCifar;
  return images > others ? ImageLayout::kFolders : ImageLayout::kNone;
}

ImageSet read_image_set(const std::string& path, ImageLayout layout, int threads) {
  if (layout == ImageLayout::kIdx) return read_idx(path, files_of(path));
  if (layout == ImageLayout::kCifar) return read_cifar(path, files_of(path));
  std::vector<Item> items;
  if (layout == ImageLayout::kTar) {
    const FileView file(path);
    for (auto& entry : parse_tar(file.bytes(), path)) {
      Item item;
      item.content = entry.content;
      if (classify(entry.name, item)) items.push_back(std::move(item));
    }
    if (items.empty()) throw UserError(path + ": an archive without CLASS/*.jpg or .png");
    return assemble(std::move(items), threads, path);
  }
  for (auto& name : files_of(path)) {
    Item item;
    item.path = name;
    if (classify(below(path, name), item)) items.push_back(std::move(item));
  }
  if (items.empty()) throw UserError(path + ": no images; put those of each class into a folder of its own");
  return assemble(std::move(items), threads, path);
}

std::string image_set_key(const std::string& path) {
  Hasher hasher;
  hasher.update(std::string_view("huajin images 2"));
  const auto add = [&](const std::string& name) {
    struct stat facts {};
    if (::stat(name.c_str(), &facts) != 0) throw UserError(fmt::format("{}: {}", name, std::strerror(errno)));
    hasher.update(static_cast<int64_t>(name.size()));
    hasher.update(name);
    hasher.update(static_cast<int64_t>(facts.st_size));
    hasher.update(static_cast<int64_t>(facts.st_mtim.tv_sec) * 1000000000 + facts.st_mtim.tv_nsec);
  };
  if (!is_folder(path)) {
    add(path);
  } else {
    for (auto& name : files_of(path)) add(name);
  }
  return hasher.hex();
}

}  // namespace huajin
