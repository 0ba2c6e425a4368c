#pragma once
// The order of the sums within a layer, along a row or a column: 32 lanes, lane l adds the values l, l + 32, ... in
// order, then the lanes fold in halves. A warp holds exactly that.
#include <cstddef>

namespace gradfuse::element {

inline constexpr std::size_t kSumLanes = 32;

template <class T>
T fold_lanes(T (&lanes)[kSumLanes]) {
  for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

/// The sum of `value(i)` for i in [0, count).
template <class T, class Value>
T lane_sum(std::size_t count, Value value) {
  T lanes[kSumLanes] = {};
  std::size_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (std::size_t l = 0; l < kSumLanes; ++l) lanes[l] += value(i + l);
  }
  for (std::size_t l = 0; i + l < count; ++l) lanes[l] += value(i + l);
  return fold_lanes(lanes);
}

}  // namespace gradfuse::element
