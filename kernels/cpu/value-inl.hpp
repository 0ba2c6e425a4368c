// The value of an element at the end of a window: accumulated, pending, or both. Which it is, is decided once a run: a
// switch inside the loops halved the speed of the steps.

template <class Grad>
struct PendingValue {
  F32 weight;
  const Grad* grad;
  template <class Lanes>
  GF_ELEMENT F32 load_at(std::size_t i, Lanes lanes) const {
    return accumulate_first(weight, load(grad + i, lanes));
  }
  GF_ELEMENT void prefetch_at(std::size_t i) const { prefetch_ahead(grad + i); }
};
template <class Grad>
struct MergedValue {
  F32 weight;
  const Grad* grad;
  const float* acc;
  template <class Lanes>
  GF_ELEMENT F32 load_at(std::size_t i, Lanes lanes) const {
    return accumulate_later(weight, load(grad + i, lanes), load(acc + i, lanes));
  }
  GF_ELEMENT void prefetch_at(std::size_t i) const {
    prefetch_ahead(grad + i);
    prefetch_ahead(acc + i);
  }
};
struct AccumulatedValue {
  const float* acc;
  template <class Lanes>
  GF_ELEMENT F32 load_at(std::size_t i, Lanes lanes) const {
    return load(acc + i, lanes);
  }
  GF_ELEMENT void prefetch_at(std::size_t i) const { prefetch_ahead(acc + i); }
};
/// FP64 is for reference work: worked out one element at a time, rounded once, and read from a buffer.
template <class Grad>
GF_NOINLINE void values_from_f64(const ValueRun& run, std::size_t numel, float* out) {
  const Grad* grad = static_cast<const Grad*>(run.grad);
  const double* acc = static_cast<const double*>(run.acc);
  const double weight = run.weight;
  for (std::size_t i = 0; i < numel; ++i) {
    const double value = grad == nullptr  ? acc[i]
                         : acc == nullptr ? element::accumulate_first(weight, wide(grad[i]))
                                          : element::accumulate_later(weight, wide(grad[i]), acc[i]);
    out[i] = static_cast<float>(value);
  }
}
template <class Grad, class Body>
GF_NOINLINE void with_value_from_f64(const ValueRun& run, std::size_t numel, const Body& body) {
  float values[kMaxRun];
  values_from_f64<Grad>(run, numel, values);
  body(AccumulatedValue{values});
}

/// Calls `body` with the value of the right type.
template <class Grad, class Body>
GF_ELEMENT void with_value_of(const ValueRun& run, std::size_t numel, const Body& body) {
  const Grad* grad = static_cast<const Grad*>(run.grad);
  if (run.acc_dtype == DType::kFloat64) {
    with_value_from_f64<Grad>(run, numel, body);
  } else if (grad == nullptr) {
    body(AccumulatedValue{static_cast<const float*>(run.acc)});
  } else if (run.acc == nullptr) {
    body(PendingValue<Grad>{splat(run.weight), grad});
  } else {
    body(MergedValue<Grad>{splat(run.weight), grad, static_cast<const float*>(run.acc)});
  }
}
template <class Body>
GF_ELEMENT void with_value(const ValueRun& run, std::size_t numel, const Body& body) {
  switch (run.grad_dtype) {
    case DType::kFloat32: return with_value_of<float>(run, numel, body);
    case DType::kFloat16: return with_value_of<Float16>(run, numel, body);
    case DType::kBFloat16: return with_value_of<BFloat16>(run, numel, body);
    case DType::kFloat64: return with_value_of<double>(run, numel, body);
  }
}
