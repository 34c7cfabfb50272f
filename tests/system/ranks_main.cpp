#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "huajin/core/errors.h"
#include "huajin/system/data/data_parallel/launch.h"
#include "ranks.h"

namespace huajin {
namespace {
std::shared_ptr<RankCommunicator> g_ranks;
}
std::shared_ptr<RankCommunicator> ranks() { return g_ranks; }
double greatest(double value) {
  double values[1] = {std::isnan(value) ? INFINITY : value};
  g_ranks->maximum(values);
  return values[0];
}
}  // namespace huajin

namespace {
class FailuresOnly : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d\n%s\n", huajin::ranks()->rank(), result.file_name() ? result.file_name() : "", result.line_number(), result.message());
    std::fflush(stderr);
  }
};
}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::GTEST_FLAG(catch_exceptions) = false;  // an error on one rank ends all of them
  try {
    const char* transport = std::getenv("HUAJIN_TEST_TRANSPORT");
    const auto launched = huajin::launch({.timeout_seconds = 20, .transport = transport ? transport : "auto", .set_threads = true});
    huajin::g_ranks = std::dynamic_pointer_cast<huajin::RankCommunicator>(launched.communicator);
    if (!huajin::g_ranks) {
      std::printf("not started by mpirun: nothing to test\n");
      return 77;
    }
    if (huajin::g_ranks->rank() == 0) {
      std::printf("%s\n", launched.description.c_str());
    } else {
      auto& listeners = testing::UnitTest::GetInstance()->listeners();
      delete listeners.Release(listeners.default_result_printer());
      listeners.Append(new FailuresOnly);
    }
    int failed = RUN_ALL_TESTS();
    failed = huajin::greatest(failed) > 0 ? 1 : 0;
    huajin::g_ranks.reset();
    return failed;
  } catch (const huajin::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    std::fflush(stderr);
    std::_Exit(error.code());
  }
}
