#include "src/nn/gemm.hpp"

#include "src/nn/normal_draw.hpp"

#include <gmock/gmock.h>
#include <gradfuse/error.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gradfuse::nn {
namespace {

using Combination = std::tuple<Stored, Stored, Destination>;

std::vector<float> normals(std::size_t numel, std::uint64_t seed) {
  NormalDraw normal(seed);
  std::vector<float> values(numel);
  for (float& value : values) value = static_cast<float>(normal());
  return values;
}

double element(std::span<const float> matrix, std::size_t row, std::size_t col, std::size_t rows, std::size_t cols,
               Stored stored) {
  return matrix[stored == Stored::kPlain ? row * cols + col : col * rows + row];
}

/// An element of C in double, and the sum of the absolute values of what was added to it.
std::pair<double, double> expected_element(const GemmSpec& spec, std::span<const float> a, std::span<const float> b,
                                           double before, std::size_t i, std::size_t j) {
  double sum = spec.c == Destination::kAddTo ? before : 0.0;
  double magnitude = std::abs(sum);
  for (std::size_t l = 0; l < spec.k; ++l) {
    const double term = element(a, i, l, spec.m, spec.k, spec.a) * element(b, l, j, spec.k, spec.n, spec.b);
    sum += term;
    magnitude += std::abs(term);
  }
  return {sum, magnitude};
}

class GemmOf : public testing::TestWithParam<Combination> {
 protected:
  static GemmSpec spec(std::size_t m, std::size_t n, std::size_t k) {
    return {m, n, k, std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam())};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryTransposeAndDestination, GemmOf,
                         testing::Combine(testing::Values(Stored::kPlain, Stored::kTransposed),
                                          testing::Values(Stored::kPlain, Stored::kTransposed),
                                          testing::Values(Destination::kOverwrite, Destination::kAddTo)));

// Any order of summing t terms in float errs by at most gamma_t * sum|terms|, gamma_t = t u / (1 - t u), u = 2^-24
// (Higham, Accuracy and Stability, 2nd ed., (3.5)). Here t = k products and C: t = k + 1, and one more for the rounding
// of the product itself. The reference's own error in double is 2^29 times smaller: one more term covers it.
TEST_P(GemmOf, MatchesDoubleWithinTheBoundOfItsSums) {
  constexpr std::tuple<std::size_t, std::size_t, std::size_t> kShapes[] = {{1, 1, 1},     {1, 10, 64},  {7, 1, 3},
                                                                           {5, 3, 1},     {17, 31, 33}, {64, 128, 64},
                                                                           {33, 10, 129}, {2, 65, 257}, {128, 96, 131}};
  Gemm gemm;
  for (const auto& [m, n, k] : kShapes) {
    SCOPED_TRACE(testing::Message() << "m=" << m << " n=" << n << " k=" << k);
    const GemmSpec of = spec(m, n, k);
    const std::vector<float> a = normals(m * k, 1), b = normals(k * n, 2), before = normals(m * n, 3);
    std::vector<float> c = before;
    gemm.multiply(of, a.data(), b.data(), c.data());
    const double terms_u = static_cast<double>(k + 3) * 0x1p-24;
    const double gamma = terms_u / (1 - terms_u);
    for (std::size_t i = 0; i < m * n; ++i) {
      const auto [expected, magnitude] = expected_element(of, a, b, before[i], i / n, i % n);
      ASSERT_LE(std::abs(c[i] - expected), gamma * magnitude) << "element " << i;
    }
  }
}

TEST_P(GemmOf, InDoubleMatchesTheReference) {
  const GemmSpec of = spec(5, 4, 7);
  const std::vector<float> a = normals(35, 1), b = normals(28, 2), before = normals(20, 3);
  const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
  std::vector<double> c(before.begin(), before.end());
  Gemm().multiply(of, wide_a.data(), wide_b.data(), c.data());
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto [expected, magnitude] = expected_element(of, a, b, before[i], i / 4, i % 4);
    EXPECT_LE(std::abs(c[i] - expected), 2 * 8 * 0x1p-53 * magnitude) << "element " << i;  // two sums of 8 terms
  }
}

TEST(Gemm, OverwritingDoesNotReadWhatStoodThere) {
  const std::vector<float> a = normals(6, 1), b = normals(12, 2);
  std::vector<float> c(8, std::numeric_limits<float>::quiet_NaN());
  Gemm().multiply({.m = 2, .n = 4, .k = 3}, a.data(), b.data(), c.data());
  for (const float value : c) EXPECT_TRUE(std::isfinite(value));
}

TEST(Gemm, InfinityAndNanReachTheProduct) {
  std::vector<float> a = {1, 1, 1, 1}, c(2);
  const std::vector<float> b = {std::numeric_limits<float>::infinity(), 1};
  a[2] = 0;  // 0 * inf
  Gemm().multiply({.m = 2, .n = 1, .k = 2}, a.data(), b.data(), c.data());
  EXPECT_EQ(c[0], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(c[1]));
}

TEST(Gemm, GivesTheSameBitsWhenASpecIsUsedAgainAndWhenItMoves) {
  const std::vector<float> a = normals(561, 1), b = normals(1023, 2);
  std::vector<float> first(527), second(527);
  Gemm gemm;
  const GemmSpec spec{.m = 17, .n = 31, .k = 33};
  gemm.multiply(spec, a.data(), b.data(), first.data());
  Gemm moved = std::move(gemm);
  moved.multiply(spec, a.data(), b.data(), second.data());
  EXPECT_EQ(first, second);
}

TEST(Gemm, KeepsWorkingWhenMoreSpecsCameThanItCaches) {
  Gemm gemm;
  for (std::size_t k = 1; k <= 600; ++k) {
    const std::vector<float> ones(k, 1.0f);
    std::vector<float> c(1);
    gemm.multiply({.m = 1, .n = 1, .k = k}, ones.data(), ones.data(), c.data());
    ASSERT_EQ(c[0], static_cast<float>(k));
  }
}

TEST(Gemm, RefusesAProductOfNothingAndLeavesCAsItWas) {
  Gemm gemm;
  const std::vector<float> six(6, 1.0f);
  std::vector<float> c(4, 5.0f);
  EXPECT_THROW(gemm.multiply({.m = 2, .n = 2, .k = 0}, six.data(), six.data(), c.data()), Error);
  EXPECT_THROW(gemm.multiply({.m = 0, .n = 2, .k = 3}, six.data(), six.data(), c.data()), Error);
  EXPECT_THAT(c, testing::Each(5.0f));
}

}  // namespace
}  // namespace gradfuse::nn
