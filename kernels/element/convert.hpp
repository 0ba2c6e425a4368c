// FP16 and BF16 from and to FP32, on the bits: to nearest, ties to even; overflow to infinity; a NaN stays a NaN;
// denormals are kept. Included per arithmetic type: no guard, no includes. `U` is a 32-bit unsigned integer or a
// vector.

template <class U>
GF_ELEMENT U bfloat16_from_float_bits(U bits) {
  const U rounded = (bits + U(0x7fffu) + ((bits >> 16) & U(1u))) >> 16;
  const U quiet_nan = (bits >> 16) | U(0x40u);  // rounding up 0x7fffffff would carry into the sign
  return select_if_greater(bits & U(0x7fffffffu), U(0x7f800000u), quiet_nan, rounded);
}
template <class U>
GF_ELEMENT U float_bits_from_bfloat16(U bits) {
  return bits << 16;
}
