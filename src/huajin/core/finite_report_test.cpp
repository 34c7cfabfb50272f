#include "huajin/core/finite_report.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

namespace huajin {
namespace {

TEST(FiniteReport, NamesTheFirstTensorAndCountsTheRest) {
  std::vector<Parameter> parameters(3);
  const char* names[] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) parameters[static_cast<size_t>(i)].name = names[i], parameters[static_cast<size_t>(i)].value = at::ones({4});
  EXPECT_EQ(finite_report(parameters), "the loss is not finite");
  parameters[1].grad = at::tensor({1.0, std::nan(""), INFINITY, std::nan("")});
  EXPECT_EQ(finite_report(parameters), "the gradient of b is not finite (2 NaN, 1 infinite of 4)");
  parameters[2].grad = at::tensor({1.0, -INFINITY, 0.0, 0.0});
  EXPECT_EQ(finite_report(parameters), "the gradient of b is not finite (2 NaN, 1 infinite of 4), and of 1 more");
  parameters[2].value = at::tensor({1.0, 2.0, std::nan(""), 3.0});  // the cause
  EXPECT_EQ(finite_report(parameters), "the weight c is not finite (1 NaN, 0 infinite of 4)");
}

}  // namespace
}  // namespace huajin
