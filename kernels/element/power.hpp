// `base^exponent` by repeated squaring: the same bits on host and device, and after a resume at any step.
// Included by scalar.hpp: no guard, no includes.

GF_ELEMENT double ipow(double base, std::int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result * base;
    base = base * base;
  }
  return result;
}
