// exp, log and the normal distribution in FP32, against the C library in FP64.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/element/scalar.hpp"

namespace gradfuse::element {
namespace {

/// In units of the last place of the FP32 number next to `exact`.
double error_in_ulps(float got, double exact) {
  const float magnitude = std::abs(static_cast<float>(exact));
  const double unit =
      static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) - magnitude;
  return std::abs(static_cast<double>(got) - exact) / unit;
}

/// The largest error over FP32 numbers of [low, high], every `stride`th pattern of bits.
template <class Function, class Exact>
double largest_error(float low, float high, Function function, Exact exact) {
  constexpr std::uint32_t kStride = 1009;
  double largest = 0.0;
  for (std::uint64_t bits = 0; bits <= 0xff800000u; bits += kStride) {
    const float x = float_of_bits(static_cast<std::uint32_t>(bits));
    if (!(x >= low && x <= high)) continue;
    largest = std::max(largest, error_in_ulps(function(x), exact(static_cast<double>(x))));
  }
  return largest;
}

double cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }

// The limits are what was measured over every 97th FP32 number (0.98, 1.15, 6.49, 2.60), rounded up: most of it are the
// roundings of the last few operations, in the cdf those of a polynomial with terms of both signs.
TEST(Transcendental, IsWithinAFewUnitsOfTheLastPlace) {
  const auto std_exp = [](double x) { return std::exp(x); };
  const auto std_log = [](double x) { return std::log(x); };
  EXPECT_LE(largest_error(
                -87.0f, 88.7f, [](float x) { return exp(x); }, std_exp),
            1.0);
  EXPECT_LE(largest_error(
                1.0001f, 1e38f, [](float x) { return log_from_1(x); }, std_log),
            1.2);
  EXPECT_LE(largest_error(
                -12.9f, 20.0f, [](float x) { return normal(x).cdf; }, cdf),
            6.5);
  EXPECT_LE(largest_error(
                -12.9f, 12.9f, [](float x) { return normal(x).density; }, density),
            2.7);
}

TEST(Transcendental, HasTheLimitsAndKeepsNan) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(-200.0f), 0.0f);
  EXPECT_EQ(exp(-inf), 0.0f);
  EXPECT_EQ(exp(100.0f), inf);
  EXPECT_EQ(exp(inf), inf);
  EXPECT_TRUE(std::isnan(exp(nan)));
  EXPECT_EQ(log_from_1(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(log_from_1(nan)));
  EXPECT_EQ(normal(1e30f).cdf, 1.0f);
  EXPECT_EQ(normal(-1e30f).cdf, 0.0f);
  EXPECT_TRUE(std::isnan(normal(nan).cdf));
  EXPECT_EQ(Gelu::value(1e30f), 1e30f);
  EXPECT_TRUE(std::isnan(Relu::value(nan)));
  EXPECT_EQ(Relu::derivative(0.0f), 0.0f);
}

}  // namespace
}  // namespace gradfuse::element
