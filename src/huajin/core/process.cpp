#include "huajin/core/process.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

constexpr int kMostThreads = 4096;

int cores_of_mask() {
  for (int bits = 1024; bits <= (1 << 18); bits *= 2) {  // the kernel refuses a mask shorter than its own
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(bits), [](cpu_set_t* s) { CPU_FREE(s); });
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    if (sched_getaffinity(0, bytes, set.get()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.get()));
  }
  return 1;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double smaller_quota(double a, double b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

double quota_v1(const std::string& folder) {
  const double quota = std::strtod(first_line(folder + "/cpu.cfs_quota_us").c_str(), nullptr);
  const double period = std::strtod(first_line(folder + "/cpu.cfs_period_us").c_str(), nullptr);
  return quota > 0 && period > 0 ? quota / period : 0;
}

// A limit may sit on any level between this group and the root. In a container the path may not exist below the mount: then the mount itself is ours.
double quota_of_group(const std::string& root, std::string path, double (*read)(const std::string&)) {
  double quota = read(root);
  while (!path.empty() && path != "/") {
    quota = smaller_quota(quota, read(root + path));
    path.resize(path.find_last_of('/'));
  }
  return quota;
}

double control_group_quota() {
  std::ifstream groups("/proc/self/cgroup");
  double quota = 0;
  for (std::string line; std::getline(groups, line);) {  // "0::/path" or "4:cpu,cpuacct:/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",", path = line.substr(second + 1);
    if (kinds == ",,") {
      quota = smaller_quota(
          quota, quota_of_group("/sys/fs/cgroup", path, [](const std::string& f) { return quota_of_cpu_max(first_line(f + "/cpu.max")); }));
    } else if (kinds.find(",cpu,") != std::string::npos) {
      quota = smaller_quota(quota, quota_of_group("/sys/fs/cgroup/cpu", path, quota_v1));
    }
  }
  return quota;
}

bool has_driver() {
  for (const char* node : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvmap"})  // dxg: Windows' Linux; nvmap: Jetson
    if (access(node, F_OK) == 0) return true;
  return false;
}

std::string try_cuda() {
  if (!has_driver()) return "this machine has no NVIDIA driver (no /dev/nvidiactl)";
  if (!at::globalContext().hasCUDA() && dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* why = dlerror();
    const std::string text = why == nullptr ? "" : why, file = text.substr(0, text.find(':'));
    if (file == "libtorch_cuda.so")
      return "this libtorch was built without CUDA; HUAJIN_TORCH=DIR names the folder of one with it, such as a full `pip install torch`";
    return fmt::format("CUDA libraries are missing ({}); HUAJIN_WITH_CUDA=1 ./huajin doctor fetches them (5.4 GB)", file);
  }
  return at::globalContext().hasCUDA() ? "" : "the NVIDIA driver has no device that this libtorch can use";
}

}  // namespace

double quota_of_cpu_max(std::string_view text) {
  std::istringstream in{std::string(text)};
  double quota = 0, period = 0;
  return in >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

CpuShare cpu_share() {
  CpuShare share;
  share.machine_cores = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  share.affinity_cores = cores_of_mask();
  share.quota_cores = control_group_quota();
  share.usable = share.affinity_cores;
  if (share.quota_cores > 0) share.usable = std::min(share.usable, std::max(1, static_cast<int>(std::ceil(share.quota_cores))));
  return share;
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);                 // large blocks come from the heap too, where their pages stay mapped
  mallopt(M_TRIM_THRESHOLD, 0x7fffffff);  // and its end is never given back
  mallopt(M_TOP_PAD, 64 << 20);           // grow in few, large steps
}

int start_process(int threads) {
  if (threads < 0 || threads > kMostThreads)
    throw UserError(fmt::format("{} threads: allowed are 1 to {}, or 0 for as many as this process may use ({}) (--threads)", threads, kMostThreads,
                                usable_cores()));
  keep_freed_memory();
  const int count = threads > 0 ? threads : usable_cores();
  at::set_num_threads(count);
  return count;
}

std::string load_cuda() {
  static const std::string reason = try_cuda();
  return reason;
}

}  // namespace huajin
