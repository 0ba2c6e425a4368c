#include "tests/error_of.hpp"
#include "tests/train/support.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>

namespace gradfuse::train {
namespace {

using test::error_of;
using testing::HasSubstr;

std::string training_error(const MlpTrainOptions& options, const nn::DigitsSplit& data = digits()) {
  std::size_t num_steps = 0;
  std::string text = error_of([&] { train_mlp(options, data, {.on_step = [&](const StepRecord&) { ++num_steps; }}); });
  EXPECT_EQ(num_steps, 0u) << "training had started";
  return text;
}

TEST(TrainMlp, RefusesCountsOfZero) {
  EXPECT_THAT(training_error({.micro_batch = 0}), HasSubstr("micro_batch is 0"));
  EXPECT_THAT(training_error({.accum_steps = 0}), HasSubstr("accum_steps is 0"));
  EXPECT_THAT(training_error({.epochs = 0}), HasSubstr("epochs is 0"));
  EXPECT_THAT(training_error({.hidden = {0}}), testing::Ne("no error"));
}

TEST(TrainMlp, RefusesRatesOutOfRange) {
  for (const double lr : {0.0, -1.0, std::nan(""), 1e39, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(training_error({.optimizer = SgdOptions{.lr = lr}}), HasSubstr("lr is ")) << lr;
  }
  for (const double eps : {-1e-8, std::nan("")}) {
    EXPECT_THAT(training_error({.optimizer = AdamOptions{.eps = eps}}), HasSubstr("eps is ")) << eps;
  }
  for (const double max_grad_norm : {0.0, -1.0, std::nan("")}) {
    EXPECT_THAT(training_error({.max_grad_norm = max_grad_norm}), HasSubstr("max_grad_norm is ")) << max_grad_norm;
  }
}

TEST(TrainMlp, RefusesEmptyData) {
  EXPECT_THAT(training_error({}, {digits().train, {}}), HasSubstr("0 test rows"));
  EXPECT_THAT(training_error({}, {{}, digits().test}), HasSubstr("0 training"));
}

TEST(TrainMlp, RefusesASingleRowUnderBatchNormBeforeItComesToIt) {
  // 1437 = 359 * 4 + 1
  EXPECT_THAT(training_error({.micro_batch = 4, .norm = nn::Norm::kBatch}), HasSubstr("micro_batch 4 leaves one row"));
  EXPECT_THAT(training_error({.micro_batch = 1, .norm = nn::Norm::kBatch}), HasSubstr("micro_batch 1 leaves one row"));
}

TEST(TrainMlp, GivesUpAtTheFloorOfTheLossScaleAndNamesTheTensor) {
  const std::string text =
      error_of([] { train({.loss_scaler = LossScaler({.init_scale = 0x1p40, .min_scale = 0x1p38})}); });
  EXPECT_THAT(text, testing::AllOf(HasSubstr("the loss scale is at its floor"), HasSubstr("the gradient of layer"),
                                   HasSubstr("of step 3 "), HasSubstr("Try a lower lr (now 0.003)")));
}

TEST(TrainMlp, GivesUpWhenAFixedLossScaleSkipsAWholeEpoch) {
  for (const bool is_unfused : {false, true}) {
    const std::string text =
        error_of([&] { train({.loss_scaler = LossScaler::fixed(0x1p40), .is_unfused = is_unfused}); });
    EXPECT_THAT(text, testing::AllOf(HasSubstr("every step of epoch 1 was skipped"), HasSubstr("lower loss_scale")));
  }
}

TEST(TrainMlp, GivesUpWhenTheLossItselfIsNotFinite) {
  const std::string text =
      error_of([] { train({.precision = DType::kFloat32, .optimizer = SgdOptions{.lr = 1e30}, .max_grad_norm = {}}); });
  EXPECT_THAT(text, testing::AllOf(HasSubstr("every step of epoch 2 was skipped"), HasSubstr("max_grad_norm 1")));
}

}  // namespace
}  // namespace gradfuse::train
