#pragma once
// The sums of kernels/element/lane_sum.hpp: along a row by a warp, whose threads are the 32 lanes, or along a column.
#include <cstdint>

#include "kernels/cuda/row.hpp"

namespace gradfuse::cuda {

/// The sum of `value(i)` for i in [0, count); in every thread of the warp.
template <class T, class Value>
__device__ inline T lane_sum(std::uint64_t count, Value value) {
  T sum = T(0);
  for (std::uint64_t i = threadIdx.x % kWarpSize; i < count; i += kWarpSize) sum = sum + value(i);
  GF_UNROLL
  for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
    sum = sum + __shfl_xor_sync(kWholeWarp, sum, distance);
  }
  return sum;
}

/// Calls `body(row)` for each row, by a warp.
template <class Body>
__device__ inline void for_each_matrix_row(std::uint64_t num_rows, Body body) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t num_warps = std::uint64_t{gridDim.x} * blockDim.x / kWarpSize;
  for (std::uint64_t row = thread / kWarpSize; row < num_rows; row += num_warps) body(row);
}

// Along a column, a block takes eight columns, so that each access of eight threads touches a whole 32-byte sector; its
// threads are 32 lanes of rows for each.
inline constexpr unsigned kColumnsPerBlock = 8;
inline constexpr unsigned kColumnBlockSize = kColumnsPerBlock * kWarpSize;

/// A thread's column and lane.
struct ColumnPlace {
  std::uint64_t column;
  unsigned lane;
};
__device__ inline ColumnPlace place_in_columns() {
  return {std::uint64_t{blockIdx.x} * kColumnsPerBlock + threadIdx.x % kColumnsPerBlock,
          threadIdx.x / kColumnsPerBlock};
}

/// The sum of `value(row)` over the rows, by the whole block, each thread for its column; in every thread. Threads past
/// the last column take part with `num_rows` 0.
template <class T, class Value, class Scratch>
__device__ inline T column_lane_sum(std::uint64_t num_rows, unsigned lane, Scratch& scratch, Value value) {
  T sum = T(0);
  for (std::uint64_t row = lane; row < num_rows; row += kWarpSize) sum = sum + value(row);
  scratch.set(threadIdx.x, sum);
  __syncthreads();
  for (unsigned half = kWarpSize / 2; half >= 1; half /= 2) {
    if (lane < half) {
      scratch.set(threadIdx.x, scratch.get(threadIdx.x) + scratch.get(threadIdx.x + half * kColumnsPerBlock));
    }
    __syncthreads();
  }
  sum = scratch.get(threadIdx.x % kColumnsPerBlock);
  __syncthreads();  // before the scratch is used again
  return sum;
}

}  // namespace gradfuse::cuda
