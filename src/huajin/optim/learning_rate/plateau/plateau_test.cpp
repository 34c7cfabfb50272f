#include "huajin/optim/learning_rate/plateau/plateau.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/bare_session.h"
#include "conformance/golden.h"
#include "conformance/tiny.h"

namespace huajin {
namespace {

TEST(PlateauSchedule, EqualsTheIndependentScript) {  // tests/golden/schedules.py
  ASSERT_GE(golden_schedules()["plateau"].size(), 3u);
  for (const auto& one : golden_schedules()["plateau"]) {
    BareSession session;
    const auto technique = make_from("plateau", one["options"]);
    technique->setup(session);
    EXPECT_EQ(session.schedule->factor({}), 1);
    for (size_t i = 0; i < one["losses"].size(); ++i) {
      technique->after_evaluation({}, one["losses"][i]);
      EXPECT_NEAR(session.schedule->factor({}), one["factors"][i].get<double>(), 1e-15) << one["options"].dump() << ", evaluation " << i;
    }
  }
}

TEST(PlateauSchedule, TakesALossThatIsNotFiniteForNoImprovement) {
  PlateauState state;
  PlateauScheduleConfig config;
  config.factor = 0.5, config.patience = 1;
  state = plateau_after(state, 2, config);
  for (int i = 0; i < 2; ++i) state = plateau_after(state, std::nan(""), config);
  EXPECT_EQ(state.scale, 0.5);
  EXPECT_EQ(state.best, 2);
}

TEST(PlateauSchedule, HasAWarmUp) {
  PlateauScheduleConfig config;
  config.warmup.warmup_steps = 4;
  BareSession session;
  PlateauSchedule technique(config);
  technique.setup(session);
  EXPECT_EQ(session.schedule->factor(session.at(0, 0)), 0.25);
  EXPECT_EQ(session.schedule->factor(session.at(9, 0)), 1);
}

// A run whose evaluations don't improve by half: the trainer tells the technique, and the weights show it.
TEST(PlateauSchedule, IsToldByTheTrainer) {
  TinyOptions options;
  options.schedule = {"plateau", {{"factor", 0.5}, {"patience", 0}, {"threshold", 0.5}}};
  TinyRun run(options);
  std::vector<double> rates;
  for (int i = 0; i < 6; ++i) {
    run.trainer().step();
    rates.push_back(run.session().optimizer().learning_rate());
    if (i % 2 == 1) run.trainer().evaluate();
  }
  EXPECT_EQ(rates, (std::vector<double>{0.1, 0.1, 0.1, 0.1, 0.05, 0.05}));
}

}  // namespace
}  // namespace huajin
