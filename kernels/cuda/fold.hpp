#pragma once
// The fixed order of every promised sum: 256 lanes, folded in halves; 4096 values at a time, recursively.
#include <cstdint>

#include "kernels/cuda/row.hpp"

namespace gradfuse::cuda {

/// Adds to each thread's value that of the thread at `distance`: both get the sum, so a lane may lie anywhere.
__device__ inline double with_thread_at(double value, int distance) {
  return value + __shfl_xor_sync(kWholeWarp, value, distance);
}

/// The sum of the 256 lanes that a warp holds in the layout of rows; in every thread. Bits of the lane, from the top:
/// four of the pair, the slot's upper one, the thread's lowest, the slot's lower two.
__device__ inline double fold_row_lanes(double (&lane)[kSlots]) {
  GF_UNROLL
  for (int distance = 16; distance >= 2; distance /= 2) {
    GF_UNROLL
    for (int s = 0; s < kSlots; ++s) lane[s] = with_thread_at(lane[s], distance);
  }
  double four[4];
  GF_UNROLL
  for (int s = 0; s < 4; ++s) four[s] = with_thread_at(lane[s] + lane[s + 4], 1);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

/// The sum of at most 4096 values by one warp; in every thread. Here lane 32 * s + t is slot s of thread t.
__device__ inline double fold_values(const double* values, std::uint64_t num_values) {
  if (num_values == 1) return load(values);
  const std::uint64_t thread = threadIdx.x % kWarpSize;
  double lane[kSlots] = {};
  for (std::uint64_t row = 0; row < num_values; row += kRowSize) {
    GF_UNROLL
    for (int s = 0; s < kSlots; ++s) {
      const std::uint64_t i = row + static_cast<std::uint64_t>(kWarpSize * s) + thread;
      if (i < num_values) lane[s] = lane[s] + load(values + i);
    }
  }
  GF_UNROLL
  for (int half = kSlots / 2; half >= 1; half /= 2) {
    GF_UNROLL
    for (int s = 0; s < half; ++s) lane[s] = lane[s] + lane[s + half];
  }
  double sum = lane[0];
  GF_UNROLL
  for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) sum = with_thread_at(sum, distance);
  return sum;
}

inline constexpr std::uint64_t kFoldSize = kChunkSize;

/// Values that `fold_by_block` needs for `num_values`: those of all levels above the first.
__host__ __device__ inline std::uint64_t fold_scratch_size(std::uint64_t num_values) {
  std::uint64_t size = 1;
  while (num_values > 1) {
    num_values = (num_values + kFoldSize - 1) / kFoldSize;
    size += num_values;
  }
  return size;
}

/// The sum of any number of values by a whole block; in every thread. All threads must call it.
__device__ inline double fold_by_block(const double* values, std::uint64_t num_values, double* scratch) {
  const std::uint64_t warp = threadIdx.x / kWarpSize, num_warps = blockDim.x / kWarpSize;
  do {
    const std::uint64_t num_groups = (num_values + kFoldSize - 1) / kFoldSize;
    for (std::uint64_t group = warp; group < num_groups; group += num_warps) {
      const std::uint64_t begin = group * kFoldSize;
      const std::uint64_t in_group = num_values - begin < kFoldSize ? num_values - begin : kFoldSize;
      const double sum = fold_values(values + begin, in_group);
      if (threadIdx.x % kWarpSize == 0) store(scratch + group, sum);
    }
    __syncthreads();
    values = scratch;
    scratch += num_groups;
    num_values = num_groups;
  } while (num_values > 1);
  const double sum = num_values == 0 ? 0.0 : load(values);
  __syncthreads();  // before the scratch is used again
  return sum;
}

}  // namespace gradfuse::cuda
