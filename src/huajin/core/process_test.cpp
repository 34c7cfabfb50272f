#include "huajin/core/process.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "huajin/core/errors.h"

namespace huajin {
namespace {

TEST(Process, ReadsTheQuotaOfAControlGroup) {
  EXPECT_EQ(quota_of_cpu_max("max 100000"), 0);
  EXPECT_DOUBLE_EQ(quota_of_cpu_max("150000 100000\n"), 1.5);
  EXPECT_DOUBLE_EQ(quota_of_cpu_max("20000 100000"), 0.2);
  EXPECT_EQ(quota_of_cpu_max(""), 0);
  EXPECT_EQ(quota_of_cpu_max("-1 100000"), 0);
  EXPECT_EQ(quota_of_cpu_max("junk"), 0);
}

TEST(Process, CountsTheCoresOfTheMaskNotOfTheMachine) {
  const CpuShare whole = cpu_share();
  EXPECT_GE(whole.usable, 1);
  EXPECT_LE(whole.usable, whole.affinity_cores);
  int masked = 0;
  std::thread([&] {  // a mask belongs to a thread: the test's own stays as it is
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &all)) {
        CPU_SET(core, &one);
        break;
      }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    masked = usable_cores();
  })
      .join();
  EXPECT_EQ(masked, 1);
}

TEST(Process, SetsTheThreadsOfLibtorch) {
  const int before = at::get_num_threads();
  EXPECT_EQ(start_process(3), 3);
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_EQ(start_process(), usable_cores());
  EXPECT_EQ(at::get_num_threads(), usable_cores());
  at::set_num_threads(before);
  EXPECT_THROW(start_process(-1), UserError);
  EXPECT_THROW(start_process(100000), UserError);
}

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(Process, FreedBlocksKeepTheirPages) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  keep_freed_memory();
  constexpr size_t kBytes = 64 << 20;
  long faults = 0;
  for (int round = 0; round < 3; ++round) {
    const long before = minor_faults();
    const std::unique_ptr<void, void (*)(void*)> block(std::malloc(kBytes), std::free);
    std::memset(block.get(), round + 1, kBytes);
    ASSERT_EQ(static_cast<char*>(block.get())[kBytes - 1], round + 1);
    faults = minor_faults() - before;
  }
  EXPECT_LT(faults, 200);  // glibc's own rule: 16,384 every time
}

TEST(Process, SaysWhyCudaIsOff) {
  const std::string why = load_cuda();
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  EXPECT_EQ(why, load_cuda());
}

}  // namespace
}  // namespace huajin
