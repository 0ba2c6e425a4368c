// Loops that only read: the canonical sum of squares and the largest magnitude. Limited by memory: 4 bytes an element
// of the accumulator and 2 of a 16-bit pending gradient.

inline constexpr std::size_t kSumLanes = 256;

template <class Value>
GF_ELEMENT double sum_of_squares_of(const Value& value, std::size_t numel) {
  alignas(64) double lanes[kSumLanes];
  // Lanes past the end would hold +0, and adding +0 to a sum of squares changes no bit: they need not exist.
  const std::size_t used = numel < kSumLanes ? std::bit_ceil(numel < kLanes ? kLanes : numel) : kSumLanes;
  for (std::size_t l = 0; l < used; ++l) lanes[l] = 0.0;
  // Row by row, though the lanes then pass through the L1 cache each time: taking several rows at once, to keep lanes
  // in registers, strides through memory, where the hardware's prefetchers do not follow (measured: a third of the
  // speed).
  for (std::size_t row = 0; row < numel; row += kSumLanes) {
    const std::size_t in_row = numel - row < kSumLanes ? numel - row : kSumLanes;
    for_each_vector(0, in_row, [&](std::size_t i, auto part) GF_ATTR {
      value.prefetch_at(row + i);
      store_lanes(add_squares(value.load_at(row + i, part), load_lanes(lanes + i)), lanes + i);
    });
  }
  for (std::size_t half = used / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}
inline double sum_of_squares_loop(const ValueRun& run, std::size_t numel) {
  double sum = 0.0;
  with_value(run, numel, [&](auto value) GF_ATTR { sum = sum_of_squares_of(value, numel); });
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
