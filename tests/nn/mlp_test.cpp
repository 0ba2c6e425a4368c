#include "tests/nn/support.hpp"

#include <gmock/gmock.h>
#include <gradfuse/nn/digits.hpp>
#include <gradfuse/nn/mlp.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace gradfuse::nn {
namespace {

MlpOptions small(DType precision = DType::kFloat32, Norm norm = Norm::kLayer) {
  return {.widths = {6, 9, 5, 3},
          .activation = Activation::kGelu,
          .norm = norm,
          .precision = precision,
          .seed = 4,
          .micro_batches_per_window = 2};
}

std::span<float> master(const Parameter& parameter) {
  return {static_cast<float*>(parameter.param.data), parameter.param.numel};
}

/// Of every master element and every byte of the gradients.
std::vector<std::uint32_t> bits_of(const Mlp& mlp) {
  std::vector<std::uint32_t> bits;
  for (const Parameter& parameter : mlp.parameters()) {
    for (const float value : master(parameter)) bits.push_back(std::bit_cast<std::uint32_t>(value));
    const auto* grad = static_cast<const std::uint8_t*>(parameter.grad.data);
    bits.insert(bits.end(), grad, grad + parameter.grad.num_bytes());
  }
  return bits;
}

/// Plain SGD in the test's own words: what an optimizer does with the views.
void sgd_step(const Mlp& mlp, float lr) {
  for (const Parameter& parameter : mlp.parameters()) {
    const std::vector<float> grad = elements<float>(parameter.grad);
    for (std::size_t i = 0; i < grad.size(); ++i) master(parameter)[i] -= lr * grad[i];
  }
}

TEST(MlpParameters, AreNamedAndShapedLayerByLayer) {
  const Mlp mlp(small());
  std::vector<std::pair<std::string, std::vector<std::size_t>>> listed;
  for (const Parameter& parameter : mlp.parameters()) listed.emplace_back(parameter.name, parameter.shape);
  const std::vector<std::pair<std::string, std::vector<std::size_t>>> expected = {
      {"layer0.weight", {9, 6}}, {"layer0.bias", {9}}, {"layer0.norm.weight", {9}}, {"layer0.norm.bias", {9}},
      {"layer1.weight", {5, 9}}, {"layer1.bias", {5}}, {"layer1.norm.weight", {5}}, {"layer1.norm.bias", {5}},
      {"layer2.weight", {3, 5}}, {"layer2.bias", {3}}};
  EXPECT_EQ(listed, expected);
}

TEST(MlpParameters, HaveAModelCopyAndGradientsInThePrecision) {
  for (const DType precision : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const Mlp mlp(small(precision));
    for (const Parameter& parameter : mlp.parameters()) {
      EXPECT_EQ(parameter.param.dtype, DType::kFloat32);
      EXPECT_EQ(parameter.grad.dtype, precision);
      EXPECT_EQ(parameter.grad.numel, parameter.param.numel);
      if (precision == DType::kFloat32) {
        EXPECT_TRUE(ConstTensorView(parameter.model).is_absent());
        continue;
      }
      EXPECT_EQ(parameter.model.dtype, precision);
      EXPECT_EQ(elements<std::uint16_t>(parameter.model), rounded(master(parameter), precision)) << parameter.name;
    }
  }
}

TEST(MlpParameters, StartWithTheVarianceOfKaiming) {
  const Mlp mlp({.widths = {100, 400, 2}});
  const std::vector<float> weight = elements<float>(mlp.parameters()[0].param);
  double sum = 0, sum_squares = 0;
  for (const float w : weight) {
    sum += w;
    sum_squares += static_cast<double>(w) * w;
  }
  const double num = static_cast<double>(weight.size());  // 40000: four standard errors of mean and variance
  EXPECT_LE(std::abs(sum / num), 4 * std::sqrt(0.02 / num));
  EXPECT_LE(std::abs(sum_squares / num - 0.02), 4 * 0.02 * std::sqrt(2 / num));
  EXPECT_THAT(elements<float>(mlp.parameters()[1].param), testing::Each(0.0f));
}

TEST(MlpBuffers, AreTheRunningStatisticsOfBatchNorm) {
  const Mlp mlp(small(DType::kFloat32, Norm::kBatch));
  std::vector<std::string> names;
  for (const NamedBuffer& named : mlp.buffers()) names.push_back(named.name);
  EXPECT_THAT(names, testing::ElementsAre("layer0.norm.running_mean", "layer0.norm.running_var",
                                          "layer1.norm.running_mean", "layer1.norm.running_var"));
  EXPECT_THAT(Mlp(small()).buffers(), testing::IsEmpty());
}

TEST(MlpBackward, WithTheSameSeedGivesTheSameBitsAndWithAnotherOtherOnes) {
  for (const Norm norm : {Norm::kNone, Norm::kLayer, Norm::kBatch}) {
    MlpOptions options = small(DType::kBFloat16, norm);
    Mlp one(options), same(options);
    options.seed = 5;
    Mlp other(options);
    const RandomRows rows = random_rows(options, 8, 1);
    const double loss = backward(one, rows.features, rows.labels);
    EXPECT_EQ(backward(same, rows.features, rows.labels), loss);
    EXPECT_NE(backward(other, rows.features, rows.labels), loss);
    EXPECT_EQ(bits_of(one), bits_of(same));
    EXPECT_NE(bits_of(one), bits_of(other));
  }
}

TEST(MlpBackward, KeepsItsViewsWhenTheModelMovesAndWhenTheBatchGrows) {
  Mlp first(small());
  const Parameter before = first.parameters()[0];
  Mlp moved = std::move(first);
  for (const std::size_t rows : {2u, 40u, 3u}) {
    const RandomRows batch = random_rows(small(), rows, rows);
    moved.backward(batch.features, batch.labels);
    EXPECT_EQ(moved.parameters()[0].param.data, before.param.data);
    EXPECT_EQ(moved.parameters()[0].grad.data, before.grad.data);
    Mlp fresh(small());
    fresh.backward(batch.features, batch.labels);
    EXPECT_EQ(bits_of(moved), bits_of(fresh)) << "what an earlier batch left behind was seen";
  }
}

class MlpHalf : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(BothFormats, MlpHalf, testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST_P(MlpHalf, GradientsAreTheFloatGradientsOfTheModelCopyRoundedToNearestEven) {
  Mlp half(small(GetParam())), single(small());
  for (std::size_t i = 0; i < half.parameters().size(); ++i) {
    cast(ConstTensorList({half.parameters()[i].model}), TensorList({single.parameters()[i].param}));
  }
  const RandomRows rows = random_rows(small(), 11, 2);
  EXPECT_EQ(backward(half, rows.features, rows.labels, 512.0f), backward(single, rows.features, rows.labels, 512.0f));
  for (std::size_t i = 0; i < half.parameters().size(); ++i) {
    const std::vector<float> exact = elements<float>(single.parameters()[i].grad);
    EXPECT_EQ(elements<std::uint16_t>(half.parameters()[i].grad), rounded(exact, GetParam()))
        << half.parameters()[i].name;
  }
}

TEST_P(MlpHalf, ReadsTheModelCopyAndNotTheMaster) {
  Mlp mlp(small(GetParam()));
  const RandomRows rows = random_rows(small(), 4, 2);
  const double loss = backward(mlp, rows.features, rows.labels);
  for (const Parameter& parameter : mlp.parameters()) std::ranges::fill(master(parameter), 0.0f);
  EXPECT_EQ(backward(mlp, rows.features, rows.labels), loss);
  EXPECT_NE(mlp.evaluate(rows.features, rows.labels).loss, std::log(3.0));  // which a model of zeros would have
}

TEST(MlpBackward, OverflowsToInfinityInFloat16ButReturnsTheLossUnharmed) {
  Mlp mlp(small(DType::kFloat16));
  const RandomRows rows = random_rows(small(), 4, 2);
  const double loss = backward(mlp, rows.features, rows.labels);
  EXPECT_EQ(backward(mlp, rows.features, rows.labels, 0x1p24f), loss);
  std::size_t num_infinite = 0;
  for (const Parameter& parameter : mlp.parameters()) {
    for (const std::uint16_t bits : elements<std::uint16_t>(parameter.grad))
      num_infinite += (bits & 0x7fffu) == 0x7c00u;
  }
  EXPECT_GT(num_infinite, 0u);
}

TEST(MlpBackward, OfAModelWithoutHiddenLayersIsThatOfSoftmaxRegression) {
  Mlp mlp({.widths = {2, 2}});
  std::ranges::fill(master(mlp.parameters()[0]), 0.0f);
  const std::vector<float> features = {1.0f, -2.0f};
  const std::vector<std::int32_t> labels = {1};
  EXPECT_EQ(backward(mlp, features, labels), static_cast<double>(std::log(2.0f)));
  // Both probabilities are exactly exp(-log 2) in float: (p - [c is the label]) * feature.
  const float p = std::exp(-std::log(2.0f));
  EXPECT_THAT(elements<float>(mlp.parameters()[0].grad), testing::ElementsAre(p, -2 * p, p - 1, -2 * (p - 1)));
  EXPECT_THAT(elements<float>(mlp.parameters()[1].grad), testing::ElementsAre(p, p - 1));
}

TEST(MlpEvaluate, CountsHitsAndChangesNothing) {
  Mlp mlp(small(DType::kFloat32, Norm::kBatch));
  const RandomRows rows = random_rows(small(), 600, 2);  // more rows than one slice
  mlp.backward(std::span(rows.features).first(60), std::span(rows.labels).first(10));
  const std::vector<std::uint32_t> before = bits_of(mlp);
  const std::vector<float> running = elements<float>(mlp.buffers()[0].buffer);
  const Evaluation all = mlp.evaluate(rows.features, rows.labels);
  double loss_sum = 0, num_hits = 0;
  for (std::size_t r = 0; r < 600; ++r) {
    const Evaluation one =
        mlp.evaluate(std::span(rows.features).subspan(r * 6, 6), std::span(rows.labels).subspan(r, 1));
    loss_sum += one.loss;
    num_hits += one.accuracy;
  }
  EXPECT_EQ(all.accuracy, num_hits / 600);
  EXPECT_LE(std::abs(all.loss - loss_sum / 600), 1e-5);  // another shape of GEMM adds in another order
  EXPECT_EQ(bits_of(mlp), before);
  EXPECT_EQ(elements<float>(mlp.buffers()[0].buffer), running);
}

TEST(MlpEvaluate, GivesTheFirstOfEqualLogitsTheHit) {
  Mlp mlp({.widths = {1, 3}});
  std::ranges::fill(master(mlp.parameters()[0]), 0.0f);
  const std::vector<float> features = {1.0f, 1.0f, 1.0f};
  EXPECT_EQ(mlp.evaluate(features, std::vector<std::int32_t>{0, 1, 2}).accuracy, 1.0 / 3.0);
}

TEST(MlpEvaluate, OfAModelWithNanHasANanLossAndNoHits) {
  Mlp mlp({.widths = {1, 2}});
  std::ranges::fill(master(mlp.parameters()[0]), std::nanf(""));
  const Evaluation broken = mlp.evaluate(std::vector<float>{1.0f, 1.0f}, std::vector<std::int32_t>{0, 1});
  EXPECT_TRUE(std::isnan(broken.loss));
  EXPECT_EQ(broken.accuracy, 0.0);
}

// A sanity check of the whole room, without the optimizer: the model's seeds 0..4 end between 0.963 and 0.981.
TEST(MlpTraining, ReachesNinetyFivePercentOnTheDigitsWithPlainSgd) {
  constexpr std::size_t kRows = 32;
  const DigitsSplit split = split_digits(load_digits(GRADFUSE_DATA_DIR "/digits.csv"), 3);
  Mlp mlp({.widths = {kDigitsInputs, 64, kDigitsClasses}, .norm = Norm::kLayer});
  const std::span features(split.train.features);
  const std::span labels(split.train.labels);
  for (int epoch = 0; epoch < 15; ++epoch) {
    for (std::size_t begin = 0; begin + kRows <= labels.size(); begin += kRows) {
      mlp.backward(features.subspan(begin * kDigitsInputs, kRows * kDigitsInputs), labels.subspan(begin, kRows));
      sgd_step(mlp, 0.1f);
    }
  }
  EXPECT_GT(mlp.evaluate(split.test.features, split.test.labels).accuracy, 0.95);
}

}  // namespace
}  // namespace gradfuse::nn
