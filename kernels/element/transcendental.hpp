// exp, log and the normal distribution in FP32, from operations that round alike on every machine: those of the C
// library and of CUDA differ in their last bits. The coefficients are minimax fits made for this file, their errors
// below 6e-9; a test compares with FP64. Included per arithmetic type: no guard, no includes.

/// Adding it, 1.5 * 2^23, rounds to a whole number, which then stands in the low bits.
inline constexpr float kRoundingShift = 0x1.8p23f;

/// 2^whole, for whole numbers from -126 to 127.
template <class F>
GF_ELEMENT F power_of_two(F whole) {
  const auto bits = bits_of(whole + constant<F>(kRoundingShift));  // 0x4b400000 + whole
  using U = std::remove_const_t<decltype(bits)>;
  return float_of((bits + U(127u - 0x4b400000u)) << 23);
}

/// 2^(x / ln 2): the whole part of the exponent, and a polynomial for the rest. Denormal results are rounded twice.
template <class F>
GF_ELEMENT F exp(F x) {
  // Beyond, the result is 0 or infinity; `max` keeps a NaN that comes second.
  x = constant<F>(0.0f) - max(constant<F>(-89.0f), constant<F>(0.0f) - max(constant<F>(-104.0f), x));
  const F whole = fma(x, constant<F>(0x1.715476p+0f), constant<F>(kRoundingShift)) - constant<F>(kRoundingShift);
  // ln 2 in two parts, of which the first has few enough bits for an exact product.
  const F rest = fma(whole, constant<F>(2.12194440e-4f), fma(whole, constant<F>(-0.693359375f), x));
  F poly = constant<F>(0.0013814467f);
  poly = fma(poly, rest, constant<F>(0.008368781f));
  poly = fma(poly, rest, constant<F>(0.041668393f));
  poly = fma(poly, rest, constant<F>(0.1666652f));
  poly = fma(poly, rest, constant<F>(0.49999994f));
  const F mantissa = fma(rest * rest, poly, rest) + constant<F>(1.0f);
  const F half = fma(whole, constant<F>(0.5f), constant<F>(kRoundingShift)) -
                 constant<F>(kRoundingShift);  // 2^whole itself may be out of range
  return mantissa * power_of_two(half) * power_of_two(whole - half);
}
GF_ELEMENT double exp(double x) { return ::exp(x); }

/// For x >= 1, such as a sum of exponentials of which one is 1. NaN and infinity give NaN.
template <class F>
GF_ELEMENT F log_from_1(F x) {
  using U = std::remove_const_t<decltype(bits_of(x))>;
  // x = mantissa * 2^exponent, with the mantissa in [sqrt(1/2), sqrt(2)).
  const U shifted = bits_of(x) + U(0x3f800000u - 0x3f3504f3u);
  const F exponent = float_of((shifted >> 23) + U(0x4b400000u - 127u)) - constant<F>(kRoundingShift);
  const F f = float_of((shifted & U(0x007fffffu)) + U(0x3f3504f3u)) - constant<F>(1.0f);
  F poly = constant<F>(-0.07634384f);
  poly = fma(poly, f, constant<F>(0.12765427f));
  poly = fma(poly, f, constant<F>(-0.13162005f));
  poly = fma(poly, f, constant<F>(0.14201368f));
  poly = fma(poly, f, constant<F>(-0.16623144f));
  poly = fma(poly, f, constant<F>(0.20001236f));
  poly = fma(poly, f, constant<F>(-0.25000826f));
  poly = fma(poly, f, constant<F>(0.3333333f));
  const F square = f * f;
  const F tail = fma(exponent, constant<F>(-2.12194440e-4f), square * f * poly);
  const F log = fma(exponent, constant<F>(0.693359375f), fma(square, constant<F>(-0.5f), f) + tail);
  return log + (x - x);
}
GF_ELEMENT double log_from_1(double x) { return ::log(x); }

/// Density and cumulative distribution of the standard normal distribution.
template <class F>
struct Normal {
  F density, cdf;
};
/// From one exponential: cdf(-a) = exp(-a^2 / 2) t r(t) with t = 1 / (1 + 0.3 a), where r is almost flat.
template <class F>
GF_ELEMENT Normal<F> normal(F x) {
  // Beyond 20 the tail is 0. `max` keeps a NaN that comes second.
  const F a = constant<F>(0.0f) - max(constant<F>(-20.0f), constant<F>(0.0f) - max(constant<F>(0.0f) - x, x));
  const F square = a * a;
  const F lost = fma(a, a, constant<F>(0.0f) - square);  // of the square; a unit there is many in the exponential
  const F power = exp(constant<F>(-0.5f) * square);
  const F bell = fma(power, constant<F>(-0.5f) * lost, power);
  const F t = constant<F>(1.0f) / fma(constant<F>(0.3f), a, constant<F>(1.0f));
  F poly = constant<F>(-0.02062346413731575f);
  poly = fma(poly, t, constant<F>(0.11243558675050735f));
  poly = fma(poly, t, constant<F>(-0.22821354866027832f));
  poly = fma(poly, t, constant<F>(0.19178445637226105f));
  poly = fma(poly, t, constant<F>(-0.07942342758178711f));
  poly = fma(poly, t, constant<F>(0.09615679830312729f));
  poly = fma(poly, t, constant<F>(0.07838965952396393f));
  poly = fma(poly, t, constant<F>(0.11023542284965515f));
  poly = fma(poly, t, constant<F>(0.11957181245088577f));
  poly = fma(poly, t, constant<F>(0.11968669295310974f));
  const F tail = bell * (t * poly);
  return {bell * constant<F>(0.3989422804014327f), if_at_most(x, constant<F>(0.0f), tail, constant<F>(1.0f) - tail)};
}
GF_ELEMENT Normal<double> normal(double x) {
  return {::exp(-0.5 * x * x) * 0.3989422804014327, 0.5 * ::erfc(-x * 0.7071067811865476)};
}
