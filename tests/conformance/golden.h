// Golden numbers of optimizers and schedules: tests/golden/{optimizers,schedules}.py made them, in float64, from the papers' formulas.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "huajin/core/registry.h"

namespace huajin {

const nlohmann::json& golden();            // optimizers.json
const nlohmann::json& golden_schedules();  // schedules.json

// A technique of the catalog with these options, as a recipe would make it.
std::unique_ptr<Technique> make_from(const std::string& name, const nlohmann::json& options);

// Every case of this optimizer, in this type, against the trace; each once without a stop and once with a new optimizer after the third step that
// gets only slots, progress and what serialize() kept.
// `strided`: weights with gaps in memory.
void expect_golden_optimizer(const std::string& name, at::ScalarType dtype, double tolerance, bool strided = false);

}  // namespace huajin
