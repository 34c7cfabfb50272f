// Rules for the start of a program: what this process may use of the machine, and how its memory and threads are set up before the first tensor
// operation. A library must not do this behind its user's back: main() calls start_process() once, first.
#pragma once
#include <string>
#include <string_view>

namespace huajin {

// Cores of the affinity mask (taskset, Slurm, containers with a cpuset), cut by the CPU quota of the control group (cgroup v1 and v2, every level up
// to the root), rounded up, at least 1. Never the machine's own count: more threads than that wait for each other at every barrier.
struct CpuShare {
  int machine_cores = 1;   // online
  int affinity_cores = 1;  // in the mask
  double quota_cores = 0;  // CPU seconds a second; 0: no quota
  int usable = 1;
};
CpuShare cpu_share();
inline int usable_cores() { return cpu_share().usable; }

// "max 100000" -> 0, "150000 100000" -> 1.5: the contents of cgroup v2's cpu.max. Throws nothing: unreadable text means no quota. Pure.
double quota_of_cpu_max(std::string_view text);

// Makes glibc keep freed blocks instead of handing their pages back: each training step asks for the same blocks again, and fresh pages fault on
// every step (a GPT-2 124M step spends a fifth of its time on it). Costs nothing but that a freed peak stays with the process.
void keep_freed_memory();

// keep_freed_memory(), then the number of threads libtorch and OpenMP compute with: `threads`, or usable_cores() where it is 0. Returns it.
// UserError for a negative number or one above 4,096.
int start_process(int threads = 0);

// libtorch_cuda.so is not linked: a start with it costs a second, and a machine without CUDA need not have its libraries. "cuda" and "auto" load it.
// "": CUDA works here. Else one line that says why not: no driver, no device, libraries missing, this libtorch was built without CUDA. Tried once.
std::string load_cuda();

}  // namespace huajin
