#pragma once
// The fixed order of every promised sum above a chunk: 4096 values at a time, 256 lanes folded in halves, recursively.
#include <span>

namespace gradfuse {

/// Sums `values`; 0 for none. The values are sums of squares: none is negative.
double canonical_sum(std::span<const double> values);

}  // namespace gradfuse
