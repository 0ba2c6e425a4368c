// Training on every machine: a device trains like the CPU.
#include <gradfuse/train/train_mlp.hpp>

#include <cmath>

#include "src/nn/normal_draw.hpp"
#include "tests/core/training.hpp"

namespace gradfuse::train {
namespace {

using TrainMlpOn = test::OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, TrainMlpOn, testing::ValuesIn(test::all_machines()), test::machine_name);

/// Ten noisy patterns, a class each.
nn::DigitsSplit patterns() {
  nn::NormalDraw normal(1);
  nn::DigitsSplit split;
  for (auto& [data, rows] : {std::pair{&split.train, 80u}, std::pair{&split.test, 20u}}) {
    for (std::size_t r = 0; r < rows; ++r) {
      const auto label = static_cast<std::int32_t>(r % nn::kDigitsClasses);
      data->labels.push_back(label);
      for (std::size_t i = 0; i < nn::kDigitsInputs; ++i) {
        const bool is_set = (i * 7 + static_cast<std::size_t>(label) * 13) % 10 < 5;
        data->features.push_back(static_cast<float>((is_set ? 1.0 : 0.0) + 0.1 * normal()));
      }
    }
  }
  return split;
}

MlpTrainOptions small_run() {
  return {.micro_batch = 8,
          .accum_steps = 4,
          .epochs = 2,
          .hidden = {12},
          .precision = DType::kFloat32,
          .optimizer = SgdOptions{.lr = 0.1, .momentum = 0.9},
          .loss_scaler = LossScaler::off()};
}

// The passes give the same bits; matrix products add in another order. A loss of about 2 is known to about 32 rows *
// 2^-24 = 2e-6 after one step; six steps at these rates carry two runs apart by a few times more.
TEST_P(TrainMlpOn, TrainsLikeTheCpuDoes) {
  const nn::DigitsSplit data = patterns();
  for (const bool is_unfused : {false, true}) {
    std::vector<double> losses, norms;
    for (const auto& on : {cpu_backend({.threads = 1, .target = "scalar"}), backend}) {
      MlpTrainOptions options = small_run();
      options.is_unfused = is_unfused;
      options.backend = on;
      train_mlp(options, data,
                {.on_step =
                     [&](const StepRecord& step) {
                       losses.push_back(step.loss);
                       norms.push_back(step.report.norm);
                     },
                 .on_epoch = {}});
    }
    ASSERT_EQ(losses.size(), 12u);  // 80 = 2 * 32 + 16, twice, on both
    EXPECT_LT(losses[5], 0.8 * losses[0]) << "it learns";
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(losses[i + 6], losses[i], 5e-5) << "step " << i;
      EXPECT_NEAR(norms[i + 6], norms[i], 5e-5) << "step " << i;
    }
  }
}

TEST_P(TrainMlpOn, BacksOffFromAnOverflowingLossScale) {
  MlpTrainOptions options = small_run();
  options.precision = DType::kFloat16;
  options.epochs = 6;
  options.loss_scaler = LossScaler({.init_scale = 0x1p24, .min_scale = 0x1p-10});
  options.backend = backend;
  std::vector<StepRecord> steps;
  const TrainSummary summary = train_mlp(
      options, patterns(), {.on_step = [&](const StepRecord& step) { steps.push_back(step); }, .on_epoch = {}});
  ASSERT_TRUE(steps.front().report.is_skipped());
  EXPECT_THAT(steps.front().non_finite_tensor, testing::StartsWith("layer"));
  EXPECT_EQ(steps[1].report.loss_scale, 0x1p23f);
  EXPECT_FALSE(steps.back().report.is_skipped());
  EXPECT_EQ(summary.parameters_digest.size(), 16u);
  const bool is_on_gpu = describe(*backend).name == "cuda";
  EXPECT_EQ(steps.back().device_bytes > 0, is_on_gpu);
  EXPECT_EQ(summary.device_peak_bytes >= steps.back().device_bytes && summary.device_peak_bytes > 0, is_on_gpu);
}

}  // namespace
}  // namespace gradfuse::train
