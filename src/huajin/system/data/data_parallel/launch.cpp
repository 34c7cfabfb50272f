#include "huajin/system/data/data_parallel/launch.h"

#include <ATen/Parallel.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "huajin/core/errors.h"
#include "huajin/core/process.h"
#include "huajin/system/data/data_parallel/rank_communicator.h"
#include "huajin/system/data/data_parallel/shared_memory.h"
#ifdef HUAJIN_MPI
#include "huajin/system/data/data_parallel/mpi_transport.h"
#endif

namespace huajin {
namespace {

int number_in(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

// Ranks of one job as the launcher's environment has it; 0: no launcher.
int ranks_in_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS"})
    if (const int ranks = number_in(name); ranks > 0) return ranks;
  // srun sets this for every step; a plain shell inside an allocation has it as well, but no rank of a step with several tasks.
  return std::getenv("SLURM_PROCID") != nullptr && std::getenv("SLURM_STEP_ID") != nullptr ? number_in("SLURM_STEP_NUM_TASKS") : 0;
}

cpu_set_t own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

Launched alone() {
  return {single_process(), usable_cores(), "1 process"};
}

}  // namespace

bool launched_with_ranks() { return ranks_in_environment() > 1; }

int threads_for(int own, int ranks_with_the_same_cores) { return std::max(1, own / std::max(1, ranks_with_the_same_cores)); }

#ifdef HUAJIN_MPI
namespace {

// Foreground threads may look for a while; a sender that shares its core with a computing thread must not.
constexpr int kForegroundSpins = 4000, kBackgroundSpins = 100;

struct Neighbours {  // the ranks beside this one
  int rank = 0, ranks = 1, threads = 1;
  bool crowded = false;  // more ranks than cores: whoever waits should sleep
};

Neighbours look_around(MPI_Comm local) {
  Neighbours machine;
  MPI_Comm_rank(local, &machine.rank);
  MPI_Comm_size(local, &machine.ranks);
  const cpu_set_t own = own_cores();
  std::vector<cpu_set_t> all(machine.ranks);
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, local);
  int sharing = 0;
  for (auto& other : all) {
    cpu_set_t common;
    CPU_AND(&common, &own, &other);
    sharing += CPU_COUNT(&common) > 0;
  }
  machine.threads = threads_for(std::min(CPU_COUNT(&own), usable_cores()), sharing);
  machine.crowded = sharing > CPU_COUNT(&own);
  return machine;
}

// Null where the machine has no room in /dev/shm: every rank then uses MPI.
std::shared_ptr<SharedSegment> shared_segment(MPI_Comm world, const Neighbours& machine, std::string& why_not) {
  char name[64] = {};
  std::shared_ptr<SharedSegment> segment;
  if (machine.rank == 0) {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    std::snprintf(name, sizeof name, "/huajin-%d-%d-%lx", static_cast<int>(getuid()), static_cast<int>(getpid()), static_cast<unsigned long>(time.tv_sec * 1000000000 + time.tv_nsec));
    try {
      segment = SharedSegment::create(name, machine.rank, machine.ranks);
    } catch (const Error& error) {
      why_not = error.what();
      name[0] = 0;
    }
  }
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, world);
  int opened = name[0] != 0;
  if (opened && machine.rank != 0) {
    try {
      segment = SharedSegment::open(name, machine.rank, machine.ranks);
    } catch (const Error& error) {
      why_not = error.what();
      opened = 0;
    }
  }
  int all = 0;
  MPI_Allreduce(&opened, &all, 1, MPI_INT, MPI_MIN, world);
  if (segment) segment->unlink();
  if (!all) return nullptr;
  segment->look_for_processes();
  return segment;
}

}  // namespace

Launched launch(const LaunchOptions& options) {
  const int expected = ranks_in_environment();
  if (expected <= 1) return alone();
  int given = MPI_THREAD_SINGLE, initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given);
  else MPI_Query_thread(&given);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != expected)
    throw UserError("the launcher says " + std::to_string(expected) + " ranks, MPI says " + std::to_string(ranks) + ": mpirun and the MPI library of this build do not belong together");
  MPI_Comm world, background, local;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_dup(MPI_COMM_WORLD, &background);
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local);
  const Neighbours machine = look_around(local);
  int one_machine = machine.ranks == ranks, everyone = 0;
  MPI_Allreduce(&one_machine, &everyone, 1, MPI_INT, MPI_MIN, world);

  std::string why_not = "ranks on several machines";
  std::shared_ptr<SharedSegment> segment;
  if (options.transport != "mpi" && everyone) segment = shared_segment(world, machine, why_not);
  if (options.transport == "shared_memory" && !segment) throw UserError("transport=shared_memory: " + why_not + "; use auto");
  if (!segment && given < MPI_THREAD_MULTIPLE) throw UserError("this MPI library does not allow calls from two threads (MPI_THREAD_MULTIPLE); use one that does");

  std::unique_ptr<Transport> front, back;
  if (segment) {
    front = shared_memory_transport(segment, 0, options.timeout_seconds, machine.crowded ? kBackgroundSpins : kForegroundSpins);
    back = shared_memory_transport(segment, 1, options.timeout_seconds, kBackgroundSpins);
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // Open MPI reports some failures of non-blocking calls there
    front = mpi_transport(world, options.timeout_seconds);
    back = mpi_transport(background, options.timeout_seconds);
  }
  // Without MPI_Finalize mpirun ends the other ranks, which is what a failed run needs.
  auto close = [segment](bool in_order) {
    if (segment) segment->leave();
    if (in_order) MPI_Finalize();
  };
  Launched result;
  result.communicator = std::make_shared<RankCommunicator>(rank, ranks, std::move(front), std::move(back), close);
  result.threads = machine.threads;
  if (options.set_threads) at::set_num_threads(machine.threads);
  result.description = std::to_string(ranks) + " ranks" + (everyone ? " on one machine" : "") + ", " + (segment ? "shared memory" : "MPI") + ", " + std::to_string(machine.threads) +
                       (machine.threads == 1 ? " thread each" : " threads each");
  return result;
}
#else
Launched launch(const LaunchOptions& options) {
  if (launched_with_ranks()) throw UserError("started with several ranks, but this huajin was built without MPI; install libopenmpi-dev and build again, or start one process");
  return alone();
}
#endif

}  // namespace huajin
