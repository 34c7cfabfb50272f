// What this machine is and does, measured. Facts are read, speeds are measured with the calls that training makes: never what the build machine
// could.
#pragma once
#include <string>
#include <vector>

#include "huajin/core/process.h"

namespace huajin {

struct MatrixSpeed {  // of a product of two square matrices, 1e9 floating-point operations a second
  double fp32 = 0, bf16 = 0;
};
struct DiskSpeed {  // MB a second, to and from the device (synced; dropped from the page cache where the file system allows it)
  double write = 0, read = 0;
  std::string error;  // not empty: the folder can't be written, and why
};
struct MachineReport {
  std::string processor;  // model name
  CpuShare share;
  std::vector<std::string> isa;  // of avx2 fma avx512f avx512_bf16 avx512_fp16 avx512_vnni amx_bf16 asimd sve bf16: those it has
  double memory_gb = 0, free_memory_gb = 0;
  MatrixSpeed one_thread, all_threads;
  double copy_gb = 0;  // memory copied, GB a second
  DiskSpeed disk;
  double disk_free_gb = 0;
  std::vector<std::string> gpus;    // names
  std::string no_cuda;              // why there are none
  std::vector<std::string> openmp;  // runtimes in this process: more than one fight over the cores
};

std::string processor_name();
std::vector<std::string> instruction_sets();
// Repeats the product for `seconds` and takes the fastest.
MatrixSpeed matrix_speed(int threads, double seconds);
double copy_speed(int threads, double seconds);
// Writes up to 256 MB into a temporary file of `folder` (made if it is missing, and then removed), for at most `seconds` each way.
DiskSpeed disk_speed(const std::string& folder, double seconds);
std::vector<std::string> loaded_openmp();

// All of it in under five seconds; `fast`: in under one, without the disk and with shorter products.
MachineReport examine_machine(const std::string& runs_folder, int threads, bool fast);

}  // namespace huajin
