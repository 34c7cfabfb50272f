// Release gate G-12 from outside: the peak of memory that `plan` predicts, and the threads that the program says it uses.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/end_to_end/cli_program.h"

namespace huajin::test {
namespace {

struct Predicted {
  double predicted = 0, measured = 0;  // MB
};
// Trains, then asks for the plan of the finished run.
Predicted memory_of(const std::string& runs, const std::string& name, std::vector<std::string> train) {
  train.insert(train.end(), {"--runs-dir", runs, "--run", name, "--quiet"});
  const Ran ran = run_huajin(train);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Ran plan = run_huajin({"plan", name, "--runs-dir", runs, "--json"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  const auto json = nlohmann::json::parse(plan.out, nullptr, false);
  if (!json.is_object() || !json.contains("against")) return {};
  const auto& memory = json["against"]["memory, MB"];
  return {memory["predicted"].get<double>(), memory["measured"].get<double>()};
}
std::vector<std::string> with_keys(std::vector<std::string> arguments, const std::vector<std::string>& keys) {
  for (auto& key : keys) arguments.insert(arguments.end(), {"--set", key});
  return arguments;
}
void expect_within_a_tenth(const Predicted& memory) {
  EXPECT_GT(memory.measured, 50);
  EXPECT_NEAR(memory.predicted / memory.measured, 1, 0.1) << memory.predicted << " MB predicted, " << memory.measured << " MB measured";
}

TEST(PredictedMemory, OfTextIsWithinATenth) {
  const TemporaryFolder folder;
  const std::string text = folder.write("text.txt", words(200000));
  expect_within_a_tenth(memory_of(folder.path(), "a",
                                  with_keys({"train", "--data", text, "--budget", "12step"},
                                            {"model.name=gpt2", "model.layers=4", "model.width=256", "model.heads=4", "batch.rows=8", "batch.length=128", "optimizer.name=adamw"})));
}

// ---- threads --------------------------------------------------------------------------------------------------------
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* open = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(open))
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    closedir(open);
  }
  return names;
}
// Fields of /proc/.../stat after the name in parentheses: 1 is the parent, 11 and 12 ticks in user and system mode.
std::vector<std::string> fields_of(const std::string& stat) {
  const std::string text = read_text(stat);
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') == std::string::npos ? text.size() : text.rfind(')') + 1)));
  return {std::istream_iterator<std::string>(rest), {}};
}
bool descends_from(const std::string& process, pid_t ancestor) {
  std::string at = process;
  for (int depth = 0; depth < 8 && std::atoi(at.c_str()) > 1; ++depth) {
    if (std::atoi(at.c_str()) == ancestor) return true;
    const auto fields = fields_of("/proc/" + at + "/stat");
    if (fields.size() < 2) return false;
    at = fields[1];
  }
  return false;
}

// Of every huajin process below the one that was started: how many of its threads did a third or more of what its busiest did.
struct BusyThreads {
  std::map<std::string, std::map<std::string, double>> ticks;  // process, thread
  void watch(pid_t started) {
    while (kill(started, 0) == 0 && fields_of("/proc/" + std::to_string(started) + "/stat").size() > 1 && fields_of("/proc/" + std::to_string(started) + "/stat")[0] != "Z") {
      for (auto& process : entries_of("/proc")) {
        if (std::atoi(process.c_str()) <= 0 || !descends_from(process, started)) continue;
        if (read_text("/proc/" + process + "/comm").rfind("huajin", 0) != 0) continue;
        for (auto& thread : entries_of("/proc/" + process + "/task")) {
          const auto fields = fields_of("/proc/" + process + "/task/" + thread + "/stat");
          if (fields.size() > 12) ticks[process][thread] = std::atof(fields[11].c_str()) + std::atof(fields[12].c_str());
        }
      }
      usleep(100000);
    }
  }
  std::vector<int> counts() const {
    std::vector<int> result;
    for (auto& [process, threads] : ticks) {
      double most = 0;
      for (auto& [thread, used] : threads) most = std::max(most, used);
      if (most < 50) continue;  // half a second: a launcher's helper
      result.push_back(static_cast<int>(std::count_if(threads.begin(), threads.end(), [&](auto& named) { return named.second >= most / 3; })));
    }
    return result;
  }
};

int printed_threads(const std::string& out) {
  const size_t at = out.find(" thread");
  size_t from = at;
  while (from != std::string::npos && from > 0 && std::isdigit(static_cast<unsigned char>(out[from - 1]))) --from;
  return at == std::string::npos ? 0 : std::atoi(out.substr(from, at - from).c_str());
}

class Threads : public testing::Test {
 protected:
  Ran train(std::vector<std::string> more, BusyThreads& busy, std::vector<std::string> launcher = {}) {
    std::vector<std::string> all = with_keys({"train", "--data", text_, "--runs-dir", folder_.path(), "--run", "a", "--budget", "8s"},
                                             {"model.name=gpt2", "model.layers=4", "model.width=256", "model.heads=4", "batch.rows=8", "batch.length=64"});
    all.insert(all.end(), more.begin(), more.end());
    HowToRun how;
    how.launcher = std::move(launcher);
    how.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}, {"OMPI_MCA_rmaps_base_oversubscribe", "1"}, {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}};
    how.meanwhile = [&](pid_t started) { busy.watch(started); };
    return run_huajin(all, how);
  }
  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", words(200000));
};

TEST_F(Threads, InUseAreThosePrinted) {
  BusyThreads busy;
  const Ran ran = train({}, busy);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(busy.counts(), std::vector<int>{printed_threads(ran.err)}) << ran.err;
}

TEST_F(Threads, InUseAreThoseAskedFor) {
  BusyThreads busy;
  const Ran ran = train({"--threads", "1"}, busy);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(printed_threads(ran.err), 1) << ran.err;
  EXPECT_EQ(busy.counts(), std::vector<int>{1}) << ran.err;
}

TEST_F(Threads, InUseByFourRanksAreThosePrinted) {
  if (std::string(HUAJIN_TEST_MPIRUN).empty()) GTEST_SKIP() << "no mpirun";
  BusyThreads busy;
  const Ran ran = train({}, busy, {HUAJIN_TEST_MPIRUN, "-n", "4"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const size_t described = ran.err.find("4 ranks");
  ASSERT_NE(described, std::string::npos) << ran.err;
  EXPECT_EQ(busy.counts(), std::vector<int>(4, printed_threads(ran.err.substr(described)))) << ran.err;
}

}  // namespace
}  // namespace huajin::test
