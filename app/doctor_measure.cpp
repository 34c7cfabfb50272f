#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "app/doctor.h"
#include "huajin/core/product_speed.h"

namespace huajin {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_from(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string cpuinfo_line(const char* key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0)
      if (const size_t colon = line.find(':'); colon != std::string::npos) return line.substr(std::min(line.size(), colon + 2));
  return "";
}

double meminfo_gb(const char* key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0) return std::strtod(line.c_str() + std::strlen(key), nullptr) * 1024 / 1e9;
  return 0;
}

// Moves `block` through `move` until `bytes` are done or the time is up; MB a second, or 0 and errno.
template <typename Move>
double transfer(std::vector<char>& block, size_t bytes, double seconds, Move move, double& moved) {
  const auto start = Clock::now();
  moved = 0;
  while (moved < static_cast<double>(bytes) && seconds_from(start) < seconds) {
    const ssize_t n = move(block.data(), block.size());
    if (n < 0) return 0;
    if (n == 0) break;
    moved += static_cast<double>(n);
  }
  return moved / 1e6 / std::max(1e-6, seconds_from(start));
}

DiskSpeed through_file(int file, double seconds) {
  constexpr size_t kBlock = 4 << 20, kBytes = 256 << 20;
  DiskSpeed speed;
  std::vector<char> block(kBlock);
  for (size_t i = 0; i < kBlock; ++i) block[i] = static_cast<char>((i * 2654435761u) >> 13);  // nothing that a file system could compress away
  double written = 0, read_back = 0;
  const auto start = Clock::now();
  transfer(
      block, kBytes, seconds, [&](char* data, size_t n) { return write(file, data, n); }, written);
  if (written == 0 || fdatasync(file) != 0) return speed.error = std::strerror(errno), speed;
  speed.write = written / 1e6 / seconds_from(start);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  lseek(file, 0, SEEK_SET);
  speed.read = transfer(
      block, static_cast<size_t>(written), seconds, [&](char* data, size_t n) { return read(file, data, n); }, read_back);
  return speed;
}

}  // namespace

std::string processor_name() {
  const std::string name = cpuinfo_line("model name");
  return name.empty() ? "unknown" : name;
}

std::vector<std::string> instruction_sets() {
  std::istringstream flags(cpuinfo_line("flags") + " " + cpuinfo_line("Features"));
  const std::set<std::string> has{std::istream_iterator<std::string>(flags), {}};
  std::vector<std::string> result;
  for (const char* name : {"avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16", "asimd", "sve", "bf16"})
    if (has.count(name)) result.emplace_back(name);
  return result;
}

MatrixSpeed matrix_speed(int threads, double seconds) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  const MatrixSpeed speed{product_flops(at::kFloat, at::kCPU, seconds) / 1e9, product_flops(at::kBFloat16, at::kCPU, seconds) / 1e9};
  at::set_num_threads(before);
  return speed;
}

double copy_speed(int threads, double seconds) {
  const at::NoGradGuard off;
  constexpr int64_t kFloats = 32 << 20;  // 128 MB, beyond every cache
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  const at::Tensor from = at::ones({kFloats}, at::kFloat), to = at::empty({kFloats}, at::kFloat);
  double best = 1e30;
  const auto start = Clock::now();
  for (int i = 0; i < 2 || seconds_from(start) < seconds; ++i) {
    const auto one = Clock::now();
    to.copy_(from);
    best = std::min(best, seconds_from(one));
  }
  at::set_num_threads(before);
  return 4.0 * kFloats / best / 1e9;
}

DiskSpeed disk_speed(const std::string& folder, double seconds) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool made = fs::create_directory(folder, error);
  std::string name = folder + "/.doctor-XXXXXX";
  const int file = mkstemp(name.data());
  DiskSpeed speed;
  if (file < 0) {
    speed.error = std::strerror(errno);
  } else {
    unlink(name.c_str());  // nothing is left behind, however this ends
    speed = through_file(file, seconds);
    close(file);
  }
  if (made) fs::remove(folder, error);
  return speed;
}

std::vector<std::string> loaded_openmp() {
  std::vector<std::string> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        const std::string path = info->dlpi_name, file = path.substr(path.find_last_of('/') + 1);
        for (const char* name : {"libgomp", "libomp", "libiomp5"})
          if (file.rfind(name, 0) == 0) static_cast<std::vector<std::string>*>(list)->push_back(path);
        return 0;
      },
      &found);
  return found;
}

MachineReport examine_machine(const std::string& runs_folder, int threads, bool fast) {
  MachineReport report;
  report.processor = processor_name();
  report.share = cpu_share();
  report.isa = instruction_sets();
  report.memory_gb = meminfo_gb("MemTotal:");
  report.free_memory_gb = meminfo_gb("MemAvailable:");
  const double each = fast ? 0.04 : 0.25;
  report.one_thread = matrix_speed(1, each);
  report.all_threads = threads > 1 ? matrix_speed(threads, each) : report.one_thread;
  report.copy_gb = copy_speed(threads, each);
  if (!fast) report.disk = disk_speed(runs_folder, 0.7);
  struct statvfs space {};
  const std::string there = std::filesystem::exists(runs_folder) ? runs_folder : ".";
  if (statvfs(there.c_str(), &space) == 0) report.disk_free_gb = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) / 1e9;
  report.no_cuda = load_cuda();
  if (report.no_cuda.empty())
    for (int i = 0; i < at::detail::getCUDAHooks().deviceCount(); ++i) report.gpus.push_back(fmt::format("cuda:{}", i));
  report.openmp = loaded_openmp();
  return report;
}

}  // namespace huajin
