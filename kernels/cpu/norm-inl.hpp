// Loops that only read: the canonical sum of squares and the largest magnitude. Limited by memory: 4 bytes an element
// of the accumulator and 2 of a 16-bit pending gradient.

inline constexpr std::size_t kSumLanes = 256;

/// Folds the upper half of the lanes onto the lower until one is left. `used` is a power of two, at least kLanes.
GF_ELEMENT double fold_lanes(double* lanes, std::size_t used) {
  for (std::size_t half = used / 2; half >= kLanes; half /= 2) {
    for (std::size_t l = 0; l < half; l += kLanes) {
      store_lanes(load_lanes(lanes + l) + load_lanes(lanes + l + half), lanes + l);
    }
  }
  return fold(load_lanes(lanes));
}

/// The same sum for few values, kept in registers: models have many tensors of a vector or two.
inline constexpr std::size_t kFewValues = 64;
template <class Value>
GF_ELEMENT double sum_of_few_squares(const Value& value, std::size_t numel) {
  constexpr std::size_t kVectors = kFewValues / kLanes;
  F64Lanes sums[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::size_t i = v * kLanes;
    sums[v] = i + kLanes <= numel ? add_squares(value.load_at(i, Whole{}), zero_lanes())
              : i < numel         ? add_squares(value.load_at(i, Part{numel - i}), zero_lanes())
                                  : zero_lanes();
  }
  for (std::size_t half = kVectors / 2; half > 0; half /= 2) {
    for (std::size_t v = 0; v < half; ++v) sums[v] = sums[v] + sums[v + half];
  }
  return fold(sums[0]);
}

template <class Value>
GF_ELEMENT double sum_of_squares_of(const Value& value, std::size_t numel) {
  if (numel <= kFewValues) return sum_of_few_squares(value, numel);
  alignas(64) double lanes[kSumLanes];
  // Row by row, though the lanes then pass through the L1 cache each time: taking several rows at once, to keep lanes
  // in registers, strides through memory, where the hardware's prefetchers do not follow (measured: a third of the
  // speed).
  const auto add_row = [&](std::size_t row, std::size_t in_row, auto sums_before) GF_ATTR {
    for_each_vector(0, in_row, [&](std::size_t i, auto part) GF_ATTR {
      value.prefetch_at(row + i);
      store_lanes(add_squares(value.load_at(row + i, part), sums_before(i)), lanes + i);
    });
  };
  const std::size_t first_row = numel < kSumLanes ? numel : kSumLanes;
  add_row(0, first_row, [](std::size_t) GF_ATTR { return zero_lanes(); });
  // Lanes past the end would hold +0, and adding +0 to a sum of squares changes no bit: beyond a power of two they need
  // not exist.
  const std::size_t used = std::bit_ceil(first_row);
  for (std::size_t l = (first_row + kLanes - 1) / kLanes * kLanes; l < used; l += kLanes) {
    store_lanes(zero_lanes(), lanes + l);
  }
  for (std::size_t row = kSumLanes; row < numel; row += kSumLanes) {
    const std::size_t in_row = numel - row < kSumLanes ? numel - row : kSumLanes;
    add_row(row, in_row, [&](std::size_t i) GF_ATTR { return load_lanes(lanes + i); });
  }
  return fold_lanes(lanes, used);
}
inline double sum_of_squares_loop(const ValueRun& run, std::size_t numel) {
  double sum = 0.0;
  with_value(run, numel, [&](const auto& value) GF_ATTR { sum = sum_of_squares_of(value, numel); });
  return sum;
}

template <class T>
std::uint32_t max_magnitude_loop(const void* x_, std::size_t numel) {
  const T* x = static_cast<const T*>(x_);
  U32 seen(0u);
  for_each_vector(0, numel, [&](std::size_t i, auto lanes) GF_ATTR {
    prefetch_ahead(x + i);
    seen = max(seen, bits_of(load(x + i, lanes)) & U32(0x7fffffffu));
  });
  return largest(seen);
}
