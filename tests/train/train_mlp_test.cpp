#include "tests/train/support.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace gradfuse::train {
namespace {

TEST(TrainMlp, ReachesNinetySevenPercentWithFloat16GradientsAndADynamicLossScale) {
  const Training run = train({});
  EXPECT_GE(run.summary.test.accuracy, 0.97);
  EXPECT_EQ(run.summary.steps, 30u * 12u);
  EXPECT_EQ(run.summary.steps, run.steps.size());
  EXPECT_EQ(run.epochs.back().test.accuracy, run.summary.test.accuracy);
}

TEST(TrainMlp, BacksOffFromAnOverflowingLossScaleAndConverges) {
  const Training run = train({.loss_scaler = LossScaler({.init_scale = 0x1p30, .min_scale = 0x1p-10})});
  ASSERT_TRUE(run.steps.front().report.is_skipped());
  EXPECT_EQ(run.steps.front().report.outcome, StepOutcome::kNonFinite);
  EXPECT_THAT(run.steps.front().non_finite_tensor, testing::StartsWith("layer"));
  EXPECT_EQ(run.steps[1].report.loss_scale, 0x1p29f);
  const auto is_skipped = [](const StepRecord& step) { return step.report.is_skipped(); };
  EXPECT_EQ(run.summary.skipped_steps, static_cast<std::size_t>(std::ranges::count_if(run.steps, is_skipped)));
  EXPECT_FALSE(run.steps.back().report.is_skipped());
  EXPECT_GE(run.summary.test.accuracy, 0.97);
}

TEST(TrainMlp, GivesTheSameBitsForTheSameSeedAndOthersForAnother) {
  for (const bool is_unfused : {false, true}) {
    MlpTrainOptions options{.epochs = 2, .is_unfused = is_unfused};
    const std::string digest = train(options).summary.parameters_digest;
    EXPECT_EQ(train(options).summary.parameters_digest, digest);
    options.seed = 1;
    EXPECT_NE(train(options).summary.parameters_digest, digest);
  }
}

// The passes promise it; the GEMM between them does not depend on the backend.
TEST(TrainMlp, GivesTheSameBitsOnEveryTargetAndThreadCountOfThePasses) {
  const std::string digest = train({.epochs = 2}).summary.parameters_digest;
  for (const std::string& target : cpu_targets()) {
    for (const int threads : {1, 3}) {
      const Training run = train({.epochs = 2, .backend = cpu_backend({.threads = threads, .target = target})});
      EXPECT_EQ(run.summary.parameters_digest, digest) << target << ", " << threads << " threads";
    }
  }
}

// With SGD the two chains differ by roundings alone. A loss of about 1 is a sum over 128 rows in float32, known to
// about 128 * 2^-24 = 8e-6; two epochs of 12 steps may carry the parameters apart by a few times more.
TEST(TrainMlp, UnfusedIsFusedWithinRounding) {
  MlpTrainOptions options{.epochs = 2,
                          .precision = DType::kFloat32,
                          .optimizer = SgdOptions{.lr = 0.1, .momentum = 0.9},
                          .loss_scaler = LossScaler::off()};
  const Training fused = train(options);
  options.is_unfused = true;
  const Training unfused = train(options);
  ASSERT_EQ(fused.steps.size(), unfused.steps.size());
  for (std::size_t i = 0; i < fused.steps.size(); ++i) {
    EXPECT_NEAR(fused.steps[i].loss, unfused.steps[i].loss, 5e-5) << "step " << i + 1;
    EXPECT_NEAR(fused.steps[i].report.clip_coef, unfused.steps[i].report.clip_coef, 5e-5) << "step " << i + 1;
  }
}

TEST(TrainMlp, EndsAnEpochWithAPartialWindow) {
  const Training run = train({.micro_batch = 100, .accum_steps = 4, .epochs = 1});
  ASSERT_EQ(run.steps.size(), 4u);  // 1437 = 3 * 400 + 2 * 100 + 37
  EXPECT_EQ(run.steps[2].report.micro_batches, 4u);
  EXPECT_EQ(run.steps[2].report.total_count, 400.0);
  EXPECT_EQ(run.steps[3].report.micro_batches, 3u);
  EXPECT_EQ(run.steps[3].report.total_count, 237.0);
  EXPECT_EQ(run.epochs[0].steps, 4u);
}

TEST(TrainMlp, TakesAWindowLargerThanTheDataAsOneOfAllRows) {
  constexpr std::size_t kHuge = ~std::size_t{0};
  for (const std::size_t micro_batch : {std::size_t{500}, kHuge}) {
    const Training run = train({.micro_batch = micro_batch, .accum_steps = kHuge, .epochs = 2});
    ASSERT_EQ(run.steps.size(), 2u);
    EXPECT_EQ(run.steps[0].report.total_count, 1437.0);
  }
}

TEST(TrainMlp, EpochLossIsTheMeanOverItsRows) {
  const Training run = train({.epochs = 1});
  double sum = 0;
  for (const StepRecord& step : run.steps) sum += step.loss * step.report.total_count;
  EXPECT_NEAR(run.epochs[0].loss, sum / 1437.0, 1e-12);
}

TEST(TrainMlp, ConvergesWithEveryOptimizerAndNorm) {
  const Training sgd = train({.precision = DType::kBFloat16,
                              .optimizer = SgdOptions{.lr = 0.1, .momentum = 0.9},
                              .loss_scaler = LossScaler::off()});
  EXPECT_GE(sgd.summary.test.accuracy, 0.97);
  const Training adam = train({.activation = nn::Activation::kRelu,
                               .norm = nn::Norm::kLayer,
                               .precision = DType::kFloat32,
                               .optimizer = AdamOptions{.lr = 3e-3},
                               .loss_scaler = LossScaler::off()});
  EXPECT_GE(adam.summary.test.accuracy, 0.97);
  const Training batch_norm = train({.norm = nn::Norm::kBatch, .is_unfused = true});
  EXPECT_GE(batch_norm.summary.test.accuracy, 0.97);
}

TEST(TrainMlp, PassesOnWhatACallbackThrows) {
  EXPECT_THROW(train_mlp({}, digits(), {.on_step = [](const StepRecord&) { throw 42; }}), int);
}

}  // namespace
}  // namespace gradfuse::train
