#include "huajin/core/loss_scaler.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "huajin/core/technique.h"

namespace huajin {
namespace {

struct NumberArchive : Archive {
  std::map<std::string, double> numbers;
  bool reading = false;
  void number(std::string_view name, double& value) override {
    if (reading) value = numbers.at(std::string(name));
    else numbers[std::string(name)] = value;
  }
  void tensor(std::string_view, Tensor&) override { FAIL() << "a scaler has no tensors"; }
  void rank_tensor(std::string_view, Tensor&) override { FAIL() << "a scaler has no tensors"; }
};

TEST(LossScaler, HalvesOnOverflowAndDoublesAfterTwoThousandGoodSteps) {
  LossScaler scaler(true);
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32768);
  for (int i = 0; i < 1999; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 32768);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536);
  for (int i = 0; i < 1999; ++i) scaler.update(false);
  scaler.update(true);  // the count starts again
  for (int i = 0; i < 1999; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 32768);
}

TEST(LossScaler, StaysWhenItIsConstant) {
  LossScaler scaler(true, 1024), off(false, 1024);
  for (int i = 0; i < 3000; ++i) scaler.update(i % 7 == 0);
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_EQ(off.scale(), 1);
  NumberArchive archive;
  scaler.serialize(archive);
  EXPECT_TRUE(archive.numbers.empty());  // it comes from the recipe
}

TEST(LossScaler, StaysWithinItsBounds) {
  LossScaler scaler(true);
  for (int i = 0; i < 100; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), LossScaler::kLeast);
  for (int i = 0; i < 100 * 2000; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), LossScaler::kMost);
}

TEST(LossScaler, DoesNothingWhenNotEnabled) {
  LossScaler scaler(false);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1);
  NumberArchive archive;
  scaler.serialize(archive);
  EXPECT_TRUE(archive.numbers.empty());
}

TEST(LossScaler, ResumesAtTheSameCount) {
  LossScaler one(true), two(true);
  one.update(true);
  for (int i = 0; i < 1500; ++i) one.update(false);
  NumberArchive archive;
  one.serialize(archive);
  archive.reading = true;
  two.serialize(archive);
  for (int i = 0; i < 500; ++i) one.update(false), two.update(false);
  EXPECT_EQ(one.scale(), 65536);
  EXPECT_EQ(two.scale(), one.scale());
  EXPECT_EQ(two.good_steps(), one.good_steps());
}

}  // namespace
}  // namespace huajin
