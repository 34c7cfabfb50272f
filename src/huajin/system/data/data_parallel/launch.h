// From a process that mpirun or srun has started to a communicator.
#pragma once
#include <memory>
#include <string>

#include "huajin/core/communicator.h"

namespace huajin {

struct LaunchOptions {
  double timeout_seconds = 60;        // a rank that others wait for longer than this is lost
  std::string transport = "auto";     // auto | shared_memory | mpi
  bool set_threads = true;            // of libtorch: what this rank may use of the machine, shared with the ranks beside it
};

struct Launched {
  std::shared_ptr<Communicator> communicator;
  int threads = 1;           // that this rank computes with
  std::string description;   // "2 ranks on one machine, shared memory, 1 thread each"
};

// From the environment alone, so that a plain ./huajin never pays for MPI: more than one rank was started by mpirun (Open MPI, MPICH, Intel) or srun.
bool launched_with_ranks();

// One process where launched_with_ranks() is false. Collective otherwise. UserError: this build has no MPI, or the ranks are not what the launcher says.
Launched launch(const LaunchOptions& options);

// Cores that this process may use, divided among the processes of this machine that may use the same.
int threads_for(int own_cores, int ranks_with_the_same_cores);

}  // namespace huajin
