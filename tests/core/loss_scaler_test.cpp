// The loss scale: the trace of torch.amp.GradScaler, and the floor and ceiling that it has not.
#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

TEST(LossScaler, FollowsTheTraceOfGradScaler) {
  // torch-contract.md, section 2: init 8, interval 2.
  const double grads[] = {1, 1, kInf, 1, kNan, 1, 1, 1, 1};
  const float scales[] = {8, 16, 8, 8, 4, 4, 8, 8, 16};
  const std::int32_t trackers[] = {1, 0, 0, 1, 0, 1, 0, 1, 0};
  OwnedSet set;
  set.add(HostTensor(DType::kFloat32, 3));
  Window window(set.params);
  Sgd optimizer(set.params);
  LossScaler scaler({.init_scale = 8.0, .growth_interval = 2});
  for (std::size_t i = 0; i < std::size(grads); ++i) {
    const float carried = scaler.scale();
    step_on(window, optimizer, {tensor_of(DType::kFloat32, {1.0, grads[i] * carried, 1.0})}, {.scaler = &scaler});
    EXPECT_EQ(optimizer.last_report().loss_scale, carried) << "window " << i;
    EXPECT_EQ(scaler.scale(), scales[i]) << "window " << i;
    EXPECT_EQ(scaler.state().growth_tracker, trackers[i]) << "window " << i;
  }
}

TEST(LossScaler, IsUpdatedAloneByTheSameRule) {
  LossScaler scaler({.init_scale = 8.0, .growth_interval = 2});
  scaler.update(false);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 16.0f);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 8.0f);
}

TEST(LossScaler, HasTheDefaultsOfGradScaler) {
  LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536.0f);
  EXPECT_TRUE(scaler.is_dynamic());
  for (int i = 0; i < 1999; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536.0f);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 131072.0f);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 65536.0f);
}

TEST(LossScaler, TheLargestPowerOfTwoStays) {
  LossScaler scaler({.init_scale = 0x1p127, .growth_interval = 1});
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 0x1p127f);
  EXPECT_EQ(scaler.state().growth_tracker, 0);
}

TEST(LossScaler, GrowthThatWouldPassTheCeilingIsNotTaken) {
  LossScaler scaler({.init_scale = 8.0, .growth_interval = 1, .max_scale = 20.0});
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 16.0f);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 16.0f) << "neither 32 nor 20, which is no power of two";
}

TEST(LossScaler, NeverFallsBelowTheFloor) {
  LossScaler scaler({.init_scale = 8.0, .growth_interval = 1, .min_scale = 3.0});
  for (const float expected : {4.0f, 3.0f, 3.0f}) {
    scaler.update(true);
    EXPECT_EQ(scaler.scale(), expected);
  }
  LossScaler by_default;
  for (int i = 0; i < 1000; ++i) by_default.update(true);
  EXPECT_EQ(by_default.scale(), std::numeric_limits<float>::min()) << "GradScaler decays to 0 here";
}

TEST(LossScaler, AFixedScaleNeverChangesButItsWindowsAreStillSkipped) {
  OwnedSet set;
  set.add(HostTensor(DType::kFloat32, 1));
  Window window(set.params);
  Sgd optimizer(set.params, {.lr = 1.0});
  LossScaler fixed = LossScaler::fixed(4.0), off = LossScaler::off();
  EXPECT_FALSE(fixed.is_dynamic() || off.is_dynamic());
  EXPECT_EQ(off.scale(), 1.0f);
  step_on(window, optimizer, {tensor_of(DType::kFloat32, {kInf})}, {.scaler = &fixed});
  EXPECT_EQ(optimizer.last_report().outcome, StepOutcome::kNonFinite);
  EXPECT_EQ(fixed.scale(), 4.0f);
  step_on(window, optimizer, {tensor_of(DType::kFloat32, {8.0})}, {.scaler = &fixed});
  EXPECT_EQ(set.param[0].get(0), -2.0) << "the step removes the scale";
  for (int i = 0; i < 5000; ++i) fixed.update(false);
  EXPECT_EQ(fixed.scale(), 4.0f);
}

TEST(LossScaler, ASavedStateContinuesTheTrace) {
  LossScaler one({.init_scale = 8.0, .growth_interval = 3}), other({.init_scale = 1024.0, .growth_interval = 3});
  one.update(false);
  one.update(false);
  other.load(one.state());
  for (const bool found : {false, true, false, false, false, false}) {
    one.update(found);
    other.update(found);
    EXPECT_EQ(one.scale(), other.scale());
    EXPECT_EQ(one.state().growth_tracker, other.state().growth_tracker);
  }
}

TEST(LossScaler, RefusesScalesThatAreNotPositiveAndFiniteInFloat32) {
  for (const double scale : {0.0, -1.0, kInf, kNan, 1e39, 1e-60}) {
    EXPECT_THAT([&] { LossScaler({.init_scale = scale}); }, throws_saying("scale")) << scale;
    EXPECT_THAT([&] { LossScaler::fixed(scale); }, throws_saying("scale")) << scale;
    EXPECT_THAT([&] { LossScaler({.min_scale = scale}); }, throws_saying("scale")) << scale;
    EXPECT_THAT([&] { LossScaler({.max_scale = scale}); }, throws_saying("scale")) << scale;
  }
  EXPECT_THAT([] { LossScaler({.init_scale = 4.0, .min_scale = 8.0}); }, throws_saying("initial", "4", "8"));
  EXPECT_THAT([] { LossScaler({.init_scale = 16.0, .max_scale = 8.0}); }, throws_saying("initial", "16", "8"));
  EXPECT_THAT([] { LossScaler({.init_scale = 8.0, .min_scale = 9.0, .max_scale = 7.0}); }, throws_saying("limits"));
}

TEST(LossScaler, RefusesFactorsAndIntervalsOutOfRange) {
  for (const double factor : {0.5, kNan, kInf, -2.0}) {
    EXPECT_THAT([&] { LossScaler({.growth_factor = factor}); }, throws_saying("growth_factor")) << factor;
  }
  for (const double factor : {0.0, 1.5, kNan, -0.5}) {
    EXPECT_THAT([&] { LossScaler({.backoff_factor = factor}); }, throws_saying("backoff_factor")) << factor;
  }
  for (const std::int32_t interval : {0, -1}) {
    EXPECT_THAT([&] { LossScaler({.growth_interval = interval}); }, throws_saying("growth_interval")) << interval;
  }
}

TEST(LossScaler, RefusesASavedStateOutOfRangeAndKeepsItsOwn) {
  LossScaler scaler({.init_scale = 8.0, .growth_interval = 4, .min_scale = 1.0, .max_scale = 64.0});
  for (const float scale : {0.5f, 128.0f, 0.0f, -8.0f, std::nanf("")}) {
    EXPECT_THAT([&] { scaler.load({.scale = scale}); }, throws_saying("saved loss scale")) << scale;
  }
  for (const std::int32_t tracker : {-1, 4, 2000}) {
    EXPECT_THAT([&] { scaler.load({.scale = 8.0f, .growth_tracker = tracker}); }, throws_saying("tracker")) << tracker;
  }
  EXPECT_EQ(scaler.scale(), 8.0f);
  EXPECT_EQ(scaler.state().growth_tracker, 0);
}

}  // namespace
}  // namespace gradfuse::test
