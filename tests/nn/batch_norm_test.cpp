#include "src/nn/norm.hpp"
#include "tests/nn/support.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace gradfuse::nn {
namespace {

constexpr std::size_t kCols = 5;
constexpr std::size_t kRows = 6;

std::vector<float> some_rows() {
  NormalDraw normal(2);
  std::vector<float> rows(kRows * kCols);
  for (float& value : rows) value = static_cast<float>(3 + 2 * normal());
  return rows;
}

const std::vector<float> kOnes(kCols, 1.0f), kZeros(kCols, 0.0f);
const NormParameters<float> kIdentity{kOnes.data(), kZeros.data()};
const std::unique_ptr<LayerPasses<float>> passes = make_layer_passes<float>(*cpu_backend());

/// Forward in training of a copy of `rows`; returns what came out.
std::vector<float> train(BatchNorm<float>& norm, std::vector<float> rows) {
  norm.reserve_rows(host_memory(), rows.size() / kCols);
  norm.forward(*passes, Mode::kTraining, {rows.size() / kCols, kCols}, kIdentity, rows.data());
  return rows;
}

double column_mean(std::span<const float> rows, std::size_t c) {
  double sum = 0;
  for (std::size_t i = c; i < rows.size(); i += kCols) sum += rows[i];
  return sum * kCols / static_cast<double>(rows.size());
}

TEST(BatchNormMomentum, OfAWindowOfOneIsTheMomentumItself) {
  EXPECT_LE(std::abs(micro_batch_momentum(0.1, 1) - 0.1), 4 * 0x1p-56);  // log1p and expm1, last bits at 0.1
}

// Each of N moves rounds to float once, at most half an ulp of a number below 8 (2^-22), and moves less than it came.
TEST(BatchNormMomentum, NIdenticalMicroBatchesMoveTheRunningMeanLikeOneLargeBatch) {
  const std::vector<float> rows = some_rows();
  for (const std::size_t micro_batches : {1u, 2u, 3u, 8u, 64u}) {
    SCOPED_TRACE(testing::Message() << micro_batches << " micro-batches");
    BatchNorm<float> norm(host_memory(), kCols, micro_batches);
    for (std::size_t i = 0; i < micro_batches; ++i) train(norm, rows);
    for (std::size_t c = 0; c < kCols; ++c) {
      const double large = 0.1 * column_mean(rows, c);  // from a running mean of 0
      EXPECT_LE(std::abs(norm.running_mean()[c] - large), static_cast<double>(micro_batches) * 0x1p-22);
    }
  }
}

TEST(BatchNormMomentum, NIdenticalMicroBatchesMoveTheRunningVarianceBySameShareToTheirOwnUnbiasedOne) {
  const std::vector<float> rows = some_rows();
  BatchNorm<float> norm(host_memory(), kCols, 4);
  for (int i = 0; i < 4; ++i) train(norm, rows);
  for (std::size_t c = 0; c < kCols; ++c) {
    const double mean = column_mean(rows, c);
    double sum_squares = 0;
    for (std::size_t i = c; i < rows.size(); i += kCols) sum_squares += (rows[i] - mean) * (rows[i] - mean);
    const double expected = 0.9 * 1.0 + 0.1 * sum_squares / (kRows - 1);
    EXPECT_LE(std::abs(norm.running_var()[c] - expected), 4 * 0x1p-22);
  }
}

TEST(BatchNormForward, GivesEachColumnMeanZeroAndVarianceOne) {
  BatchNorm<float> norm(host_memory(), kCols, 1);
  const std::vector<float> y = train(norm, some_rows());
  for (std::size_t c = 0; c < kCols; ++c) {
    double sum_squares = 0;
    for (std::size_t i = c; i < y.size(); i += kCols) sum_squares += static_cast<double>(y[i]) * y[i];
    EXPECT_LE(std::abs(column_mean(y, c)), 3 * 0x1p-24);       // each below 3, rounded to float
    EXPECT_LE(std::abs(sum_squares / kRows - 1), 1e-5 / 0.5);  // eps beside a variance above 0.5
  }
}

TEST(BatchNormForward, InInferenceUsesTheRunningStatisticsAndLeavesThem) {
  BatchNorm<float> norm(host_memory(), kCols, 1);
  std::vector<float> rows = some_rows();
  const std::vector<float> before = rows;
  norm.reserve_rows(host_memory(), kRows);
  norm.forward(*passes, Mode::kInference, {kRows, kCols}, kIdentity,
               rows.data());  // running mean 0, running variance 1
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i], static_cast<float>(before[i] / std::sqrt(1 + 1e-5))) << i;
  }
  EXPECT_THAT(std::span(norm.running_mean(), kCols), testing::Each(0.0f));
  EXPECT_THAT(std::span(norm.running_var(), kCols), testing::Each(1.0f));
}

}  // namespace
}  // namespace gradfuse::nn
