// huajin doctor: what this machine is, how fast it is, and what huajin chooses on it.
#include "app/doctor.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands.h"
#include "huajin/core/errors.h"
#include "huajin/io/json.h"
#include "huajin/run/run.h"

namespace huajin {
namespace {

// Path of a program in $PATH; "" if there is none.
std::string program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = folder + "/" + name; access(file.c_str(), X_OK) == 0) return file;
  return "";
}

std::string mpi_text() {
#ifdef HUAJIN_MPI_FOUND
  const std::string mpirun = program("mpirun");
  return mpirun.empty() ? "built in, but no mpirun in PATH: install openmpi-bin" : mpirun;
#else
  return "not built in: install libopenmpi-dev and openmpi-bin, then run ./huajin again";
#endif
}

std::string compute_name(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return "bf16";
    case at::kHalf:
      return "fp16";
    case at::kDouble:
      return "fp64";
    default:
      return "fp32";
  }
}

// What a person should do something about.
std::vector<std::string> hints(const MachineReport& report, int threads, bool fast) {
  std::vector<std::string> list;
  if (threads == 1 && report.share.usable > 1) list.emplace_back("computing with 1 thread: --threads 0 uses every core that this process may use");
  if (report.share.usable < report.share.machine_cores)
    list.push_back(
        fmt::format("this process may use {} of {} cores (affinity mask or control group)", report.share.usable, report.share.machine_cores));
  if (report.openmp.size() != 1)
    list.push_back(fmt::format("{} OpenMP runtimes are loaded ({}): their threads fight; build with GCC against one libtorch", report.openmp.size(),
                               fmt::join(report.openmp, ", ")));
  if (report.free_memory_gb < 2) list.push_back(fmt::format("only {:.1f} GB of memory are free", report.free_memory_gb));
  if (!fast && !report.disk.error.empty())
    list.push_back("the folder of runs cannot be written (" + report.disk.error + "); --runs-dir names another");
  if (report.disk_free_gb < 2) list.push_back(fmt::format("only {:.1f} GB of disk are free for checkpoints", report.disk_free_gb));
  return list;
}

Json speed_json(const MatrixSpeed& speed) { return {{"fp32", speed.fp32}, {"bf16", speed.bf16}}; }

Json as_json(const MachineReport& r, const std::string& device, const std::string& precision, int threads, const std::vector<std::string>& advice) {
  return {{"processor", r.processor},
          {"cores",
           {{"machine", r.share.machine_cores}, {"affinity", r.share.affinity_cores}, {"quota", r.share.quota_cores}, {"usable", r.share.usable}}},
          {"isa", r.isa},
          {"libtorch_uses", at::get_cpu_capability()},
          {"memory_gb", r.memory_gb},
          {"free_memory_gb", r.free_memory_gb},
          {"gemm_gflops", {{"one_thread", speed_json(r.one_thread)}, {"all_threads", speed_json(r.all_threads)}}},
          {"copy_gb_per_s", r.copy_gb},
          {"disk", {{"write_mb_per_s", r.disk.write}, {"read_mb_per_s", r.disk.read}, {"error", r.disk.error}, {"free_gb", r.disk_free_gb}}},
          {"gpus", r.gpus},
          {"no_cuda", r.no_cuda},
          {"mpi", mpi_text()},
          {"openmp", r.openmp},
          {"libtorch", HUAJIN_TORCH_VERSION},
          {"chosen", {{"device", device}, {"precision", precision}, {"threads", threads}}},
          {"hints", advice}};
}

void print_machine(const MachineReport& r, const CommandLine& line) {
  const std::string quota = r.share.quota_cores > 0 ? fmt::format(", quota {:.2f}", r.share.quota_cores) : "";
  fmt::print("processor   {}; {} cores, {} usable (mask {}{})\n", r.processor, r.share.machine_cores, r.share.usable, r.share.affinity_cores, quota);
  fmt::print("            {}; libtorch uses {}\n", fmt::join(r.isa, " "), at::get_cpu_capability());
  fmt::print("memory      {:.1f} GB, {:.1f} free; copies {:.1f} GB/s\n", r.memory_gb, r.free_memory_gb, r.copy_gb);
  fmt::print("products    fp32 {:.0f} GF/s on 1 thread, {:.0f} on all; bf16 {:.0f} and {:.0f}\n", r.one_thread.fp32, r.all_threads.fp32,
             r.one_thread.bf16, r.all_threads.bf16);
  if (line.fast)
    fmt::print("disk        {}: {:.0f} GB free\n", line.runs_folder, r.disk_free_gb);
  else if (!r.disk.error.empty())
    fmt::print("disk        {}: {}\n", line.runs_folder, r.disk.error);
  else
    fmt::print("disk        {}: writes {:.0f} MB/s, reads {:.0f} MB/s, {:.0f} GB free\n", line.runs_folder, r.disk.write, r.disk.read,
               r.disk_free_gb);
  if (r.gpus.empty())
    fmt::print("GPU         none: {}\n", r.no_cuda);
  else
    fmt::print("GPU         {}\n", fmt::join(r.gpus, ", "));
  fmt::print("MPI         {}\n", mpi_text());
  fmt::print("libtorch    {}; OpenMP {}\n", HUAJIN_TORCH_VERSION, fmt::join(r.openmp, ", "));
}

}  // namespace

int doctor_command(const CommandLine& line) {
  const int threads = at::get_num_threads();
  const MachineReport report = examine_machine(line.runs_folder, threads, line.fast);
  const bool cuda = report.no_cuda.empty() && line.device != "cpu";
  const std::string device = cuda ? "cuda" : "cpu";
  const std::string precision = compute_name(choose_compute("auto", cuda ? at::kCUDA : at::kCPU));
  const std::vector<std::string> advice = hints(report, threads, line.fast);
  if (line.json) {
    fmt::print("{}\n", json_text(as_json(report, device, precision, threads, advice), 2));
    return kExitOk;
  }
  print_machine(report, line);
  fmt::print("chosen      device {}, precision {}, {} thread{}\n", device, precision, threads, threads == 1 ? "" : "s");
  for (auto& hint : advice) fmt::print("note        {}\n", hint);
  return kExitOk;
}

}  // namespace huajin
