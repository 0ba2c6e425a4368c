#include "tests/error_of.hpp"
#include "tests/train/support.hpp"

#include <gmock/gmock.h>
#include <gradfuse/train/compare_large_batch.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace gradfuse::train {
namespace {

MlpTrainOptions float32_options() {
  return {.epochs = 3,
          .precision = DType::kFloat32,
          .optimizer = AdamWOptions{.lr = 3e-3, .eps = 1e-3},
          .loss_scaler = LossScaler::off()};
}

TEST(CompareLargeBatch, AgreesToRoundingWithAdamWAndSgd) {
  for (const std::size_t micro_batch : {7u, 32u}) {  // 1437 = 51 * 28 + 9: a partial window with a partial micro-batch
    MlpTrainOptions options = float32_options();
    options.micro_batch = micro_batch;
    EXPECT_LE(compare_large_batch(options, digits()).max_abs, 1e-6);
    options.optimizer = SgdOptions{.lr = 0.05, .momentum = 0.9};
    options.norm = nn::Norm::kLayer;
    EXPECT_LE(compare_large_batch(options, digits()).max_abs, 1e-6);
  }
}

TEST(CompareLargeBatch, TellsEachEpochAndReturnsTheWorst) {
  std::vector<LargeBatchDifference> epochs;
  const LargeBatchDifference worst =
      compare_large_batch(float32_options(), digits(), [&](const auto& epoch) { epochs.push_back(epoch); });
  ASSERT_EQ(epochs.size(), 3u);
  double max_abs = 0;
  for (const LargeBatchDifference& epoch : epochs) max_abs = std::max(max_abs, epoch.max_abs);
  EXPECT_EQ(worst.max_abs, max_abs);
  EXPECT_EQ(worst.epoch, 3u);
  EXPECT_EQ(worst.steps, 36u);
  EXPECT_GT(worst.max_abs, 0.0) << "nothing was compared";
  EXPECT_LT(epochs.back().loss, epochs.front().loss) << "nothing was learnt";
}

TEST(CompareLargeBatch, JudgesANanAsADifference) {
  EXPECT_FALSE(LargeBatchDifference{.max_abs = std::numeric_limits<double>::quiet_NaN()}.is_rounding());
  EXPECT_FALSE(LargeBatchDifference{.max_abs = 1.1e-6}.is_rounding());
  EXPECT_TRUE(LargeBatchDifference{.max_abs = 1e-6}.is_rounding());
}

TEST(CompareLargeBatch, RefusesWhatCannotAgree) {
  const auto refusal = [](const MlpTrainOptions& options) {
    return test::error_of([&] { compare_large_batch(options, digits()); });
  };
  MlpTrainOptions half = float32_options(), batch_norm = half, single = half, whole = half;
  half.precision = DType::kFloat16;
  EXPECT_THAT(refusal(half), testing::HasSubstr("precision is float16"));
  batch_norm.norm = nn::Norm::kBatch;
  EXPECT_THAT(refusal(batch_norm), testing::HasSubstr("batch normalisation"));
  single.accum_steps = 1;
  EXPECT_THAT(refusal(single), testing::HasSubstr("nothing to compare"));
  whole.micro_batch = 1437;
  EXPECT_THAT(refusal(whole), testing::HasSubstr("nothing to compare"));
}

}  // namespace
}  // namespace gradfuse::train
