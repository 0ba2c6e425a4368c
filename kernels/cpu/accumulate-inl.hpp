// Loops of the scaled add. Limited by memory: gradient in, accumulator out, and in when later; 6 and 10 bytes an
// element with 16-bit gradients. Finding values that are not finite costs an add: `x - x` is 0 for those that are, else
// NaN.

template <class Grad, Store kStore>
bool accumulate_first_to(float weight, const Grad* grad, float* out, std::size_t numel) {
  const F32 w = splat(weight);
  F32 nonfinite = splat(0.0f);
  for_each_stored_vector<kStore>(out, numel, [&](std::size_t i, auto lanes) GF_ATTR {
    prefetch_ahead(grad + i);
    const F32 value = accumulate_first(w, load(grad + i, lanes));
    nonfinite = nonfinite + (value - value);
    store<kStore>(value, out + i, lanes);
  });
  return any_nan(nonfinite);
}
template <class Grad>
bool accumulate_first_loop(float weight, const void* grad, float* out, std::size_t numel, Store store_kind) {
  const Grad* typed = static_cast<const Grad*>(grad);
  return store_kind == Store::kStreaming ? accumulate_first_to<Grad, Store::kStreaming>(weight, typed, out, numel)
                                         : accumulate_first_to<Grad, Store::kCached>(weight, typed, out, numel);
}
template <class Grad>
bool accumulate_later_loop(float weight, const void* grad_, const float* acc, float* out, std::size_t numel) {
  const Grad* grad = static_cast<const Grad*>(grad_);
  const F32 w = splat(weight);
  F32 nonfinite = splat(0.0f);
  for_each_vector(0, numel, [&](std::size_t i, auto lanes) GF_ATTR {
    prefetch_ahead(grad + i);
    prefetch_ahead(acc + i);
    const F32 value = accumulate_later(w, load(grad + i, lanes), load(acc + i, lanes));
    nonfinite = nonfinite + (value - value);
    store(value, out + i, lanes);
  });
  return any_nan(nonfinite);
}

// The FP64 accumulator is for reference work: plain loops, which the compiler vectorises as it can.
GF_ELEMENT double wide(float value) { return value; }
GF_ELEMENT double wide(double value) { return value; }
GF_ELEMENT double wide(Float16 value) { return element::float_from_float16(value.bits); }
GF_ELEMENT double wide(BFloat16 value) {
  return element::float_of_bits(element::float_bits_from_bfloat16(std::uint32_t{value.bits}));
}
template <class Grad>
bool accumulate_first_f64_loop(float weight, const void* grad, double* out, std::size_t numel) {
  double nonfinite = 0.0;
  for (std::size_t i = 0; i < numel; ++i) {
    out[i] = element::accumulate_first(double{weight}, wide(static_cast<const Grad*>(grad)[i]));
    nonfinite += out[i] - out[i];
  }
  return nonfinite != nonfinite;
}
template <class Grad>
bool accumulate_later_f64_loop(float weight, const void* grad, const double* acc, double* out, std::size_t numel) {
  double nonfinite = 0.0;
  for (std::size_t i = 0; i < numel; ++i) {
    out[i] = element::accumulate_later(double{weight}, wide(static_cast<const Grad*>(grad)[i]), acc[i]);
    nonfinite += out[i] - out[i];
  }
  return nonfinite != nonfinite;
}
