#include "src/nn/half_panels.hpp"

#include <gmock/gmock.h>
#include <gradfuse/error.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gradfuse::nn {
namespace {

struct Format {
  DType dtype;
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint16_t infinity() const { return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits); }

  /// The definition of IEEE 754's finite numbers, without a bit trick. Also for infinity: the power of two after the
  /// max.
  double value(std::uint16_t magnitude) const {
    const int exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1 << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias() - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias() - mantissa_bits);
  }
};

float widened(const Format& format, std::uint16_t bits) {
  float value = 0;
  widen({&bits, 1, format.dtype}, {&value, 1});
  return value;
}

std::uint16_t narrowed(const Format& format, double exact) {
  const float value = static_cast<float>(exact);
  EXPECT_EQ(value, exact) << "the test's own number is not a float";
  std::uint16_t bits = 0;
  narrow({&value, 1}, {&bits, 1, format.dtype});
  return bits;
}

class HalfPanels : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(BothFormats, HalfPanels,
                         testing::Values(Format{DType::kFloat16, 5, 10}, Format{DType::kBFloat16, 8, 7}),
                         [](const auto& info) { return std::string(dtype_name(info.param.dtype)); });

TEST_P(HalfPanels, EveryFiniteNumberWidensToItsValueAndComesBack) {
  for (std::uint16_t bits = 0; bits < GetParam().infinity(); ++bits) {
    const double value = GetParam().value(bits);
    ASSERT_EQ(widened(GetParam(), bits), value);
    ASSERT_EQ(narrowed(GetParam(), value), bits);
    ASSERT_EQ(narrowed(GetParam(), -value), bits | 0x8000u);
    ASSERT_TRUE(std::signbit(widened(GetParam(), static_cast<std::uint16_t>(bits | 0x8000u))));
  }
}

TEST_P(HalfPanels, HalfwayGoesToEvenAndTheNextFloatsGoToTheirSide) {
  for (std::uint16_t bits = 0; bits < GetParam().infinity(); ++bits) {
    const auto above = static_cast<std::uint16_t>(bits + 1);
    const float halfway = static_cast<float>((GetParam().value(bits) + GetParam().value(above)) / 2);
    ASSERT_EQ(narrowed(GetParam(), halfway), bits % 2 == 0 ? bits : above) << bits;
    ASSERT_EQ(narrowed(GetParam(), std::nextafter(halfway, 0.0f)), bits);
    ASSERT_EQ(narrowed(GetParam(), std::nextafter(halfway, std::numeric_limits<float>::infinity())), above);
  }
}

TEST_P(HalfPanels, InfinityAndNanSurviveBothWays) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(widened(GetParam(), GetParam().infinity()), infinity);
  EXPECT_EQ(narrowed(GetParam(), -infinity), GetParam().infinity() | 0x8000u);
  EXPECT_EQ(narrowed(GetParam(), std::numeric_limits<float>::max()), GetParam().infinity());
  for (const std::uint32_t payload : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    const float nan = std::bit_cast<float>(payload);
    std::uint16_t bits = 0;
    narrow({&nan, 1}, {&bits, 1, GetParam().dtype});
    EXPECT_GT(bits & 0x7fffu, GetParam().infinity()) << std::hex << payload;
    EXPECT_TRUE(std::isnan(widened(GetParam(), bits)));
  }
}

TEST(HalfPanelsRefuse, OtherDtypesAndOtherNumbersOfElements) {
  std::vector<float> floats(3);
  std::vector<std::uint16_t> halves(3);
  EXPECT_THROW(widen({floats.data(), 3, DType::kFloat32}, floats), Error);
  EXPECT_THROW(narrow(floats, {floats.data(), 3, DType::kFloat64}), Error);
  EXPECT_THROW(widen({halves.data(), 2, DType::kFloat16}, floats), Error);
  EXPECT_THROW(narrow(floats, {halves.data(), 2, DType::kBFloat16}), Error);
}

}  // namespace
}  // namespace gradfuse::nn
