#include "huajin/optim/learning_rate/step/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "huajin/core/errors.h"

namespace huajin {

std::vector<double> parse_milestones(const std::string& text) {
  if (text.empty()) throw UserError("schedule.milestones=\"\": give at least one fraction between 0 and 1, such as \"0.5, 0.75\", or another schedule");
  std::vector<double> milestones;
  std::istringstream parts(text + (text.back() == ',' ? "," : ""));  // what follows a last comma is a part as well
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    const double value = std::strtod(part.c_str(), &end);
    const bool whole = end != part.c_str() && part.find_first_not_of(" ", static_cast<size_t>(end - part.c_str())) == part.npos;
    if (!whole || !(value > 0 && value < 1) || (!milestones.empty() && value <= milestones.back()))
      throw UserError(fmt::format("schedule.milestones=\"{}\": \"{}\" is out of place; give fractions between 0 and 1 that rise, such as \"0.5, 0.75\"", text, part));
    milestones.push_back(value);
  }
  return milestones;
}

double step_shape(double fraction, const std::vector<double>& milestones, double factor) {
  return std::pow(factor, std::upper_bound(milestones.begin(), milestones.end(), fraction) - milestones.begin());
}

StepSchedule::StepSchedule(const StepScheduleConfig& config)
    : ScheduleTechnique("step", config.warmup, [milestones = parse_milestones(config.milestones), factor = config.factor](double fraction) {
        return step_shape(fraction, milestones, factor);
      }) {}

}  // namespace huajin
