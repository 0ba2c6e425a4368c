// FP16 from and to FP32 one element at a time; SIMD targets and CUDA have an instruction for it, with the same result.
// Included inside a namespace that has `float_of_bits` and `bits_of_float`: no guard, no includes.

GF_ELEMENT std::uint32_t float16_from_float_bits(std::uint32_t bits) {
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520, halfway to 2^16, and all above
  if (magnitude < 0x38800000u) {  // below 2^-14: one unit of 0.5f is 2^-24, the smallest FP16, so this add rounds
    return sign | (bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000u);
  }
  return sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13);
}
GF_ELEMENT float float_from_float16(std::uint32_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = half & 0x7c00u;
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  if (exponent == 0x7c00u) {
    const std::uint32_t quiet = magnitude > (0x7c00u << 13) ? 0x400000u : 0u;
    return float_of_bits(sign | 0x7f800000u | (magnitude & 0x7fffffu) | quiet);
  }
  if (exponent != 0) return float_of_bits(sign | (magnitude + (112u << 23)));
  const float value = static_cast<float>(half & 0x3ffu) * 0x1p-24f;  // zero and denormals, exact
  return float_of_bits(sign | bits_of_float(value));
}
