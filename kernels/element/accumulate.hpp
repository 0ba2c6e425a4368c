// Scaled add of a micro-batch's gradient into the accumulator, one rounding an element.
// Included once per SIMD target inside that target's namespace: no guard, no includes; `F` brings its own `fma`.

/// Takes no accumulator: whatever stood in the buffer, NaN included, must not reach the sum.
template <class F>
GF_ELEMENT F accumulate_first(F weight, F grad) {
  return weight * grad;
}
template <class F>
GF_ELEMENT F accumulate_later(F weight, F grad, F acc) {
  return fma(weight, grad, acc);
}
