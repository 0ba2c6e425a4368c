#include <gradfuse/train/train_mlp.hpp>

#include <gtest/gtest.h>

namespace gradfuse::train {
namespace {

MlpTrainOptions options(std::size_t micro_batch, std::size_t accum_steps, LrScaling scaling) {
  return {.micro_batch = micro_batch,
          .accum_steps = accum_steps,
          .optimizer = SgdOptions{.lr = 0.5},
          .lr_scaling = scaling};
}

TEST(EffectiveLr, FollowsTheEffectiveBatch) {
  EXPECT_EQ(effective_lr(options(64, 8, LrScaling::kNone), 1437), 0.5);
  EXPECT_EQ(effective_lr(options(64, 8, LrScaling::kLinear), 1437), 2.0);
  EXPECT_EQ(effective_lr(options(64, 8, LrScaling::kSqrt), 1437), 1.0);
  EXPECT_EQ(effective_lr(options(8, 4, LrScaling::kSqrt), 1437), 0.25);
}

TEST(EffectiveLr, IsTheBaseAtTheBaseBatch) {
  for (const LrScaling scaling : {LrScaling::kNone, LrScaling::kLinear, LrScaling::kSqrt}) {
    EXPECT_EQ(effective_lr(options(kLrBaseBatch / 4, 4, scaling), 1437), 0.5);
  }
}

TEST(EffectiveLr, CountsNoRowsThatAreNotThere) {
  EXPECT_EQ(effective_lr(options(~std::size_t{0}, ~std::size_t{0}, LrScaling::kLinear), 256), 1.0);
}

TEST(RowsPerWindow, AreAtMostAllRows) {
  EXPECT_EQ(rows_per_window(options(32, 4, LrScaling::kNone), 1437), 128u);
  EXPECT_EQ(rows_per_window(options(1437, 1, LrScaling::kNone), 1437), 1437u);
  EXPECT_EQ(rows_per_window(options(1438, 1, LrScaling::kNone), 1437), 1437u);
  EXPECT_EQ(rows_per_window(options(479, 3, LrScaling::kNone), 1437), 1437u);
  EXPECT_EQ(rows_per_window(options(479, 4, LrScaling::kNone), 1437), 1437u);
}

}  // namespace
}  // namespace gradfuse::train
