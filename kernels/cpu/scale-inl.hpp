// Loops of the unfused chain's single-purpose passes: scale and cast, a*x + b*y, zero. Limited by memory: the bytes of
// what goes in and out.

// The flag tells of what was stored: a finite product may round to an infinite FP16.
template <class In, class Out, Store kStore>
bool scale_to(float factor, const In* in, Out* out, std::size_t numel) {
  const F32 f = splat(factor);
  F32 nonfinite = splat(0.0f);
  for_each_stored_vector<kStore>(out, numel, [&](std::size_t i, auto lanes) GF_ATTR {
    prefetch_ahead(in + i);
    const F32 value = f * load(in + i, lanes);
    const F32 stored = rounded_to<Out>(value);
    nonfinite = nonfinite + (stored - stored);
    store<kStore>(value, out + i, lanes);
  });
  return any_nan(nonfinite);
}
template <class In, class Out>
bool scale_loop(float factor, const void* in_, void* out_, std::size_t numel, Store store_kind) {
  const In* in = static_cast<const In*>(in_);
  Out* out = static_cast<Out*>(out_);
  return store_kind == Store::kStreaming ? scale_to<In, Out, Store::kStreaming>(factor, in, out, numel)
                                         : scale_to<In, Out, Store::kCached>(factor, in, out, numel);
}

template <class X>
void axpby_loop(float a, const void* x_, float b, const float* y, float* out, std::size_t numel) {
  const X* x = static_cast<const X*>(x_);
  const F32 a_all = splat(a), b_all = splat(b);
  for_each_vector(0, numel, [&](std::size_t i, auto lanes) GF_ATTR {
    prefetch_ahead(x + i);
    prefetch_ahead(y + i);
    store(fma(a_all, load(x + i, lanes), b_all * load(y + i, lanes)), out + i, lanes);
  });
}

template <Store kStore>
void zero_to(float* out, std::size_t numel) {
  for_each_stored_vector<kStore>(
      out, numel, [&](std::size_t i, auto lanes) GF_ATTR { store<kStore>(splat(0.0f), out + i, lanes); });
}
inline void zero_loop(float* out, std::size_t numel, Store store_kind) {
  store_kind == Store::kStreaming ? zero_to<Store::kStreaming>(out, numel) : zero_to<Store::kCached>(out, numel);
}
