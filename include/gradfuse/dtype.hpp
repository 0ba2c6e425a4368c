#pragma once
// Element types, and storage for the two 16-bit ones that C++20 has no type for.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradfuse {

enum class DType : std::uint32_t { kFloat32, kFloat16, kBFloat16, kFloat64 };
inline constexpr std::size_t kNumDTypes = 4;

/// IEEE 754 binary16, as stored: 1 sign, 5 exponent, 10 mantissa bits.
struct Float16 {
  std::uint16_t bits = 0;
};

/// The upper half of an IEEE 754 binary32, as stored: 1 sign, 8 exponent, 7 mantissa bits.
struct BFloat16 {
  std::uint16_t bits = 0;
};

/// Bytes of one element.
constexpr std::size_t element_size(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32: return 4;
    case DType::kFloat16:
    case DType::kBFloat16: return 2;
    case DType::kFloat64: return 8;
  }
  return 0;
}

/// "float32", "float16", "bfloat16" or "float64".
constexpr std::string_view dtype_name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat64: return "float64";
  }
  return "invalid dtype";
}

template <class T>
inline constexpr DType dtype_of = [] { static_assert(sizeof(T) == 0, "no DType for this type"); }();
template <>
inline constexpr DType dtype_of<float> = DType::kFloat32;
template <>
inline constexpr DType dtype_of<Float16> = DType::kFloat16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::kBFloat16;
template <>
inline constexpr DType dtype_of<double> = DType::kFloat64;

}  // namespace gradfuse
