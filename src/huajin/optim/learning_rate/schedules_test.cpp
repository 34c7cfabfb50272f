// What every schedule of the catalog that is a function of progress must do, tried on each of its cases in tests/golden/schedules.json. Laws of one schedule are in its own folder.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "huajin/core/errors.h"

namespace huajin {
namespace {

using Options = nlohmann::json;

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (auto& entry : catalog().entries())
    if (entry.part == PartOfRun::kSchedule && entry.name != "plateau") names.push_back(entry.name);  // that one depends on what evaluations saw
  return names;
}

class FieldDefaults : public Fields {
 public:
  std::map<std::string, double> numbers;
  explicit FieldDefaults(const std::string& technique) { catalog().find(technique)->describe(*this); }
  void number(std::string_view name, double& value, Range, std::string_view) override { numbers[std::string(name)] = value; }
  void integer(std::string_view name, int64_t& value, Range, std::string_view) override { numbers[std::string(name)] = static_cast<double>(value); }
  void flag(std::string_view, bool&, std::string_view) override {}
  void text(std::string_view, std::string&, std::vector<std::string_view>, std::string_view) override {}
};

struct NothingToKeep : Archive {
  void number(std::string_view name, double&) override { ADD_FAILURE() << name; }
  void tensor(std::string_view name, Tensor&) override { ADD_FAILURE() << name; }
  void rank_tensor(std::string_view name, Tensor&) override { ADD_FAILURE() << name; }
};

class Schedules : public testing::TestWithParam<std::string> {
 protected:
  std::vector<Options> cases() const {  // options of each golden case
    std::vector<Options> result;
    for (auto& one : golden_schedules()["schedules"])
      if (one["name"] == GetParam()) result.push_back(one["options"]);
    return result;
  }
  std::unique_ptr<Schedule> make(const Options& options) const {
    BareSession session;
    make_from(GetParam(), options)->setup(session);
    return std::move(session.schedule);
  }
  static Progress at(int64_t step, int64_t total) {
    Progress p;
    p.step = p.draw = step;
    p.fraction = static_cast<double>(step) / static_cast<double>(total);
    return p;
  }
  bool has(const char* field) const { return FieldDefaults(GetParam()).numbers.count(field) > 0; }
};

TEST_P(Schedules, EqualTheFormula) {
  int found = 0;
  for (const auto& one : golden_schedules()["schedules"]) {
    if (one["name"] != GetParam()) continue;
    ++found;
    const auto schedule = make(one["options"]);
    for (const auto& point : one["points"]) {
      Progress progress;
      progress.step = point[0], progress.fraction = point[1];
      EXPECT_NEAR(schedule->factor(progress), point[2].get<double>(), 1e-12) << one["options"].dump() << ", step " << point[0];
    }
  }
  EXPECT_GE(found, 2);
}

TEST_P(Schedules, AreWithinZeroAndOneAndMoveFromTheFirstUpdate) {
  for (auto& options : cases())
    for (const int64_t total : {7, 40, 1001}) {
      const auto schedule = make(options);
      EXPECT_GT(schedule->factor(at(0, total)), 0) << options.dump();
      for (int64_t step = 0; step <= total; ++step) {
        const double factor = schedule->factor(at(step, total));
        EXPECT_TRUE(factor >= 0 && factor <= 1) << options.dump() << ", step " << step << " of " << total << ": " << factor;
      }
    }
}

TEST_P(Schedules, ArePureFunctionsOfProgress) {  // so they resume by construction: nothing is kept, and whoever starts in the middle sees the same
  for (auto& options : cases()) {
    NothingToKeep nothing;
    make_from(GetParam(), options)->serialize(nothing);
    const auto straight = make(options);
    std::vector<double> factors;
    for (int64_t step = 0; step <= 50; ++step) factors.push_back(straight->factor(at(step, 50)));
    for (int64_t step = 50; step >= 0; --step) {
      EXPECT_EQ(make(options)->factor(at(step, 50)), factors[static_cast<size_t>(step)]) << options.dump();
      EXPECT_EQ(straight->factor(at(step, 50)), factors[static_cast<size_t>(step)]) << options.dump();
    }
  }
}

TEST_P(Schedules, DependOnTheFractionOfTheBudgetOnly) {  // f(t / T): a budget ten times as long is the same curve, dilated
  int tried = 0;
  for (auto& options : cases()) {
    if (options.contains("warmup_steps")) continue;
    ++tried;
    const auto schedule = make(options);
    for (int64_t step = 0; step <= 64; ++step) EXPECT_EQ(schedule->factor(at(step, 64)), schedule->factor(at(16 * step, 16 * 64))) << options.dump();
  }
  EXPECT_GE(tried, 1);
}

TEST_P(Schedules, EndAtTheirFinalValueWhenTheBudgetEnds) {
  if (!has("final")) return;
  for (auto& options : cases())
    EXPECT_NEAR(make(options)->factor(at(1000, 1000)), options.value("final", FieldDefaults(GetParam()).numbers["final"]), 1e-15) << options.dump();
}

TEST_P(Schedules, WarmUpLinearlyAndRefuseWhatCannotBe) {
  if (!has("warmup_steps")) return;
  const auto plain = make({}), slow = make({{"warmup_steps", 100}});
  for (int64_t step = 0; step < 200; ++step)
    EXPECT_NEAR(slow->factor(at(step, 200)), plain->factor(at(step, 200)) * std::min(1.0, (static_cast<double>(step) + 1) / 100), 1e-15);
  EXPECT_THROW(slow->check(99), UserError);
  EXPECT_NO_THROW(slow->check(100));
  EXPECT_NO_THROW(slow->check(std::numeric_limits<double>::infinity()));
  EXPECT_THROW(make({{"warmup_steps", 10}, {"warmup", 0.1}}), UserError);
}

INSTANTIATE_TEST_SUITE_P(Each, Schedules, testing::ValuesIn(schedule_names()), [](const auto& each) { return each.param; });

}  // namespace
}  // namespace huajin
