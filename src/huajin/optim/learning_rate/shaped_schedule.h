// What the schedules of this folder share: a linear warm-up that is never zero, and behind it a shape over the budget. A schedule's own header holds
// its keys and its shape, a pure function of the part of the budget that is spent.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "huajin/core/settings.h"
#include "huajin/core/technique.h"

namespace huajin {

struct Warmup {
  static constexpr double kLeast = 0.01;  // factor of the very first update where the length is a fraction: how much a step will take isn't known yet
  double warmup = 0;                      // fraction of the budget
  int64_t warmup_steps = 0;               // instead: updates
  void fields(Fields& f) {
    f.number("warmup", warmup, {.least = 0, .most = 1, .open_most = true}, "fraction of the budget in which the rate rises linearly");
    f.integer("warmup_steps", warmup_steps, {.least = 0}, "the same in updates; give one of the two");
  }
};

struct FallingConfig {  // keys of a schedule that falls from 1 to `final`
  Warmup warmup;
  double final = 0;
  void fields(Fields& f) {
    warmup.fields(f);
    f.number("final", final, {.least = 0, .most = 1}, "factor when the budget ends");
  }
};

// In (0, 1]: min(1, fraction / warmup), at least kLeast; or min(1, (step + 1) / warmup_steps).
double warmup_factor(const Warmup& w, const Progress& progress);
// Part of what follows a warm-up that was given as a fraction: 0 when it ends, 1 when the budget ends. With warmup_steps: `fraction` itself.
double after_warmup(const Warmup& w, double fraction);
// UserError: both were given, or more updates than `total_steps` (infinity: unknown) are asked for.
void check_warmup(const Warmup& w, double total_steps);

// warmup_factor(progress) shape(progress.fraction)
class ShapedSchedule : public Schedule {
 public:
  using Shape = std::function<double(double fraction)>;  // [0, 1] -> [0, 1]; pure
  ShapedSchedule(const Warmup& warmup, Shape shape);     // UserError: both warm-ups are given
  double factor(const Progress& progress) const override { return warmup_factor(warmup_, progress) * shape_(progress.fraction); }
  void check(double total_steps) const override { check_warmup(warmup_, total_steps); }

 private:
  Warmup warmup_;
  Shape shape_;
};

// The technique that [schedule] name="..." chooses: it hands over its schedule and is done.
class ScheduleTechnique : public Technique {
 public:
  ScheduleTechnique(std::string name, const Warmup& warmup, ShapedSchedule::Shape shape) : name_(std::move(name)), schedule_(warmup, std::move(shape)) {}
  std::string_view name() const override { return name_; }
  void setup(Session& session) override { session.set_schedule(std::make_unique<ShapedSchedule>(schedule_)); }
  const Schedule& schedule() const { return schedule_; }

 private:
  std::string name_;
  ShapedSchedule schedule_;
};

}  // namespace huajin
