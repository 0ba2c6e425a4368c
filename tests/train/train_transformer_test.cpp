#include <gmock/gmock.h>
#include <gradfuse/train/train_transformer.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/error_of.hpp"

namespace gradfuse::train {
namespace {

using test::error_of;
using testing::HasSubstr;

const nn::TokenText& novel() {
  static const nn::TokenText text = nn::TokenText::bytes_of(GRADFUSE_DATA_DIR "/persuasion.txt");
  return text;
}

TransformerTrainOptions small() {
  return {.model = {.vocabulary = 256, .context = 32, .width = 32, .layers = 2, .heads = 2},
          .micro_batch = 4,
          .accum_steps = 2,
          .steps = 6,
          .optimizer = AdamWOptions{.lr = 3e-3}};
}

struct Training {
  TransformerTrainSummary summary;
  std::vector<double> losses;
};
Training train(const TransformerTrainOptions& options) {
  Training run;
  run.summary = train_transformer(
      options, novel(),
      {.on_step = [&](const StepRecord& step) { run.losses.push_back(step.loss); }, .on_validation = {}});
  return run;
}

TEST(TrainTransformer, LearnsMoreThanTheFrequenciesOfLetters) {
  TransformerTrainOptions options = small();
  options.steps = 150;
  const Training run = train(options);
  EXPECT_GT(run.summary.unigram_entropy, 2.9);
  EXPECT_LT(run.summary.validation_loss, run.summary.unigram_entropy - 0.3);
  EXPECT_EQ(run.summary.steps, 150u);
}

TEST(TrainTransformer, GivesTheSameBitsForTheSameSeedAndOthersForAnother) {
  TransformerTrainOptions options = small();
  const std::string digest = train(options).summary.parameters_digest;
  EXPECT_EQ(train(options).summary.parameters_digest, digest);
  options.seed = 1;
  EXPECT_NE(train(options).summary.parameters_digest, digest);
}

// The routes differ in where sums are rounded: a loss near 5 over 256 tokens is known to about 256 * 2^-24 of it, and
// six steps at this rate carry runs apart by a few times more.
TEST(TrainTransformer, EveryRouteDoesTheSameWithinRounding) {
  TransformerTrainOptions options = small();
  options.optimizer = SgdOptions{.lr = 0.1};
  const Training reference = train(options);
  for (const Route route : {Route::kUnfused, Route::kFused, Route::kStreamed}) {
    options.route = route;
    const Training run = train(options);
    for (std::size_t i = 0; i < run.losses.size(); ++i) EXPECT_NEAR(run.losses[i], reference.losses[i], 5e-4) << i;
  }
}

// 16-bit parameters are off by 2^-9 (bfloat16) or 2^-11 of themselves, and the logits, sums of 32 products of weights
// of 0.02 with values around 1, by that of about 0.5: 1e-3 in the loss. Ten times that over six steps.
TEST(TrainTransformer, SixteenBitRunsTrackFloat32) {
  TransformerTrainOptions options = small();
  const Training single = train(options);
  for (const DType precision : {DType::kFloat16, DType::kBFloat16}) {
    for (const Route route : {Route::kFused, Route::kGemm}) {
      options.model.precision = precision;
      options.route = route;
      options.loss_scaler = precision == DType::kFloat16 ? LossScaler{{.init_scale = 1024.0}} : LossScaler::off();
      const Training half = train(options);
      EXPECT_EQ(half.summary.skipped_steps, 0u);
      for (std::size_t i = 0; i < half.losses.size(); ++i) EXPECT_NEAR(half.losses[i], single.losses[i], 1e-2) << i;
    }
  }
}

TEST(TrainTransformer, BacksOffFromAnOverflowingLossScaleAndNamesTheTensor) {
  TransformerTrainOptions options = small();
  options.model.precision = DType::kFloat16;
  options.route = Route::kFused;
  options.loss_scaler = LossScaler({.init_scale = 0x1p40, .min_scale = 0x1p-10, .max_scale = 0x1p60});
  std::vector<StepRecord> steps;
  train_transformer(options, novel(),
                    {.on_step = [&](const StepRecord& step) { steps.push_back(step); }, .on_validation = {}});
  EXPECT_TRUE(steps.front().report.is_skipped());
  EXPECT_NE(steps.front().non_finite_tensor, "");
  EXPECT_EQ(steps[1].report.loss_scale, 0x1p39f);
  options.loss_scaler = LossScaler::fixed(0x1p40);
  EXPECT_THAT(error_of([&] { train(options); }), HasSubstr("training has diverged: step 1"));
}

TEST(TrainTransformer, RefusesWhatCannotBe) {
  TransformerTrainOptions options = small();
  options.model.context = 100'000;
  EXPECT_THAT(error_of([&] { train(options); }), HasSubstr("a context of 100000 needs 100001 there"));
  options = small();
  options.model.vocabulary = 100;
  EXPECT_THAT(error_of([&] { train(options); }), HasSubstr("the model's vocabulary is 100"));
  options = small();
  options.steps = 0;
  EXPECT_THAT(error_of([&] { train(options); }), HasSubstr("steps is 0"));
}

}  // namespace
}  // namespace gradfuse::train
