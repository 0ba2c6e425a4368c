// Gradients of the MLP: against finite differences in double, then over micro-batches.
#include "tests/nn/double_net.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <span>
#include <tuple>
#include <vector>

namespace gradfuse::nn {
namespace {

class MlpGradient : public testing::TestWithParam<std::tuple<Activation, Norm>> {
 protected:
  static MlpOptions options() {
    return {.widths = {5, 7, 6, 4},
            .activation = std::get<0>(GetParam()),
            .norm = std::get<1>(GetParam()),
            .precision = DType::kFloat32,
            .seed = 1,
            .micro_batches_per_window = 1};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryActivationAndNorm, MlpGradient,
                         testing::Combine(testing::Values(Activation::kRelu, Activation::kGelu),
                                          testing::Values(Norm::kNone, Norm::kLayer, Norm::kBatch)),
                         [](const auto& info) {
                           return combination_name(std::get<0>(info.param), std::get<1>(info.param));
                         });

// With h = 2^-17 central differences err by h^2/6 |f'''| and by the loss's own rounding over h: 6e-11 * 1e1 / 6 and
// about 100 roundings * 2^-53 * 2 / h = 3e-9. 3e-8 leaves a factor of ten, and is 1e-6 of a typical gradient.
TEST_P(MlpGradient, MatchesCentralDifferencesInDoubleForEveryParameter) {
  constexpr double kStep = 0x1p-17, kTolerance = 3e-8;
  DoubleNet model(options());
  model.backward();
  const std::vector<double> analytic = model.grads;
  for (const NamedSegment& named : model.layout.parameters) {
    for (std::size_t i = 0; i < named.segment.numel; ++i) {
      double& param = model.params[named.segment.offset + i];
      const double saved = param;
      param = saved + kStep;
      const double above = model.backward();
      param = saved - kStep;
      const double below = model.backward();
      param = saved;
      EXPECT_LE(std::abs((above - below) / (2 * kStep) - analytic[named.segment.offset + i]), kTolerance)
          << named.name << "[" << i << "]";
    }
  }
}

TEST_P(MlpGradient, IsNotAllZeroInAnyTensorButTheBiasThatBatchNormRemoves) {
  DoubleNet model(options());
  model.backward();
  for (const NamedSegment& named : model.layout.parameters) {
    const double largest_grad = largest(named.segment.of(std::span<const double>(model.grads)));
    const bool is_removed = options().norm == Norm::kBatch && named.name.ends_with(".bias") &&
                            !named.name.ends_with("norm.bias") && named.name != "layer2.bias";
    if (is_removed) {
      EXPECT_LE(largest_grad, 1e-15) << named.name;
    } else {
      EXPECT_GE(largest_grad, 1e-3) << named.name;
    }
  }
}

TEST_P(MlpGradient, IsMultipliedExactlyByALossScaleThatIsAPowerOfTwo) {
  DoubleNet shape(options());
  MlpNet<float> net(options(), shape.layout);
  const std::vector<float> features(shape.features.begin(), shape.features.end());
  const std::vector<float> params(shape.params.begin(), shape.params.end());
  std::vector<float> plain(shape.layout.numel), scaled(shape.layout.numel);
  net.backward({features, shape.labels}, params.data(), 1.0f, plain.data());
  const double loss = net.take_loss_sum();
  net.backward({features, shape.labels}, params.data(), 4096.0f, scaled.data());
  const double scaled_loss = net.take_loss_sum();
  EXPECT_EQ(loss, scaled_loss) << "the loss that is returned is not scaled";
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(4096.0f * plain[i], scaled[i]) << i;
}

// Batch normalisation is left out: it normalises by the micro-batch, so its gradients do differ.
class MlpMicroBatches : public MlpGradient {};
INSTANTIATE_TEST_SUITE_P(EveryActivation, MlpMicroBatches,
                         testing::Combine(testing::Values(Activation::kRelu, Activation::kGelu),
                                          testing::Values(Norm::kNone, Norm::kLayer)),
                         [](const auto& info) {
                           return combination_name(std::get<0>(info.param), std::get<1>(info.param));
                         });

// The two differ only in the order of sums over 9 rows and in the division by the rows: well under 100 roundings of
// 2^-53 of the largest term, and no gradient here has terms above 10.
TEST_P(MlpMicroBatches, WeightedByTheirRowsHaveTheMeanGradientOfTheLargeBatch) {
  DoubleNet large(options());
  const double large_loss = large.backward();
  DoubleNet part(options());
  std::vector<double> mean(large.layout.numel, 0.0);
  double mean_loss = 0;
  std::size_t begin = 0;
  for (const std::size_t rows : {4u, 2u, 1u, 2u}) {
    const Batch<double> batch{std::span(large.features).subspan(begin * 5, rows * 5),
                              std::span(large.labels).subspan(begin, rows)};
    const double weight = static_cast<double>(rows) / static_cast<double>(kRows);
    part.net.backward(batch, part.params.data(), 1.0, part.grads.data());
    mean_loss += part.net.take_loss_sum() / static_cast<double>(kRows);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += weight * part.grads[i];
    begin += rows;
  }
  ASSERT_EQ(begin, kRows);
  EXPECT_LE(std::abs(mean_loss - large_loss), 100 * 0x1p-53 * 10);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    EXPECT_LE(std::abs(mean[i] - large.grads[i]), 100 * 0x1p-53 * 10) << i;
  }
}

}  // namespace
}  // namespace gradfuse::nn
