// Loops of a net's layers that are limited by arithmetic: the activations and the softmax.

template <class Activation>
void activate_loop(const float* x, float* y, std::size_t numel) {
  for_each_vector(
      0, numel, [&](std::size_t i, auto lanes) GF_ATTR { store(Activation::value(load(x + i, lanes)), y + i, lanes); });
}
template <class Activation>
void activation_gradient_loop(const float* x, float* grad, std::size_t numel) {
  for_each_vector(0, numel, [&](std::size_t i, auto lanes) GF_ATTR {
    store(load(grad + i, lanes) * Activation::derivative(load(x + i, lanes)), grad + i, lanes);
  });
}

inline float sum_of_exponentials_loop(const float* x, float shift, std::size_t numel) {
  constexpr std::size_t kVectors = element::kSumLanes / kLanes;
  const F32 shift_all = splat(shift);
  F32 sums[kVectors];
  for (F32& sum : sums) sum = splat(0.0f);
  const auto add_row = [&](const float* row) GF_ATTR {
    for (std::size_t v = 0; v < kVectors; ++v) sums[v] = sums[v] + exp(load_vector(row + v * kLanes) - shift_all);
  };
  std::size_t i = 0;
  for (; i + element::kSumLanes <= numel; i += element::kSumLanes) add_row(x + i);
  if (i < numel) {
    float rest[element::kSumLanes];
    for (float& value : rest) value = -std::numeric_limits<float>::infinity();  // whose exponential is 0
    std::memcpy(rest, x + i, (numel - i) * sizeof(float));
    add_row(rest);
  }
  for (std::size_t half = kVectors / 2; half > 0; half /= 2) {
    for (std::size_t v = 0; v < half; ++v) sums[v] = sums[v] + sums[v + half];
  }
  return fold(sums[0]);
}

inline void softmax_gradient_loop(float log_sum, float scale, float* logits, std::size_t numel) {
  const F32 log_sum_all = splat(log_sum), scale_all = splat(scale);
  for_each_vector(0, numel, [&](std::size_t i, auto lanes) GF_ATTR {
    store(scale_all * exp(load(logits + i, lanes) - log_sum_all), logits + i, lanes);
  });
}
