#include "app/default_corpus.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/io/file.h"

namespace huajin {
namespace {

constexpr uint64_t kMostBytes = 8'000'000;
// Whole families of generated headers that say the same a thousand times are left out.
constexpr const char* kFolders[] = {"ATen/core", "ATen/cpu", "ATen/native", "c10", "torch/csrc/api", "torch/csrc/autograd", "torch/csrc/jit"};

std::vector<std::string> headers_under(const std::string& include) {
  std::vector<std::string> paths;
  for (auto* folder : kFolders) {
    std::error_code failed;
    for (std::filesystem::recursive_directory_iterator at(include + "/" + folder, failed), end; !failed && at != end; at.increment(failed))
      if (at->path().extension() == ".h" && at->is_regular_file(failed)) paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

}  // namespace

std::string default_corpus(const std::string& cache) {
  const std::string path = cache + "/default-corpus-" HUAJIN_TORCH_VERSION ".txt";
  if (exists(path) && file_size(path) > 0) return path;
  const auto headers = headers_under(HUAJIN_TORCH_INCLUDE);
  std::string text;
  for (auto& header : headers) {
    if (text.size() >= kMostBytes) break;
    text += read_file(header);
  }
  if (text.size() < 100'000)
    throw UserError("the default data, libtorch's headers, is not in " HUAJIN_TORCH_INCLUDE "; give --data FILE or FOLDER of your own");
  text.resize(std::min<size_t>(text.size(), kMostBytes));
  make_folder(cache);
  write_atomically(path, text);
  return path;
}

}  // namespace huajin
