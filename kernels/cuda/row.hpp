#pragma once
// How a warp walks through a chunk: rows of 256 elements, 8 of them a thread, which are also the 256 lanes of the
// canonical sums.
//
// Threads work in pairs on 16 consecutive elements: the even one has [0..3] and [8..11], the odd one [4..7] and
// [12..15]. So each 16-byte access of FP32 touches whole 32-byte sectors; the 16-byte access of 16-bit elements has
// [0..7] in the even thread and [8..15] in the odd one, and two shuffles put it right.
//
// The first row may begin before the chunk, so that rows begin at a 16-byte boundary of the tensors. An element then
// still has a fixed slot of a fixed thread for its lane, only that lanes are rotated among the slots.
#include <cstdint>

#include "kernels/cuda/device_code.hpp"
#include "kernels/element/chunk.hpp"

namespace gradfuse::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;
inline constexpr int kRowSize = 256;
inline constexpr int kSlots = 8;  // elements of a thread in a row
inline constexpr unsigned kVectorBytes = 16;

/// Where in a row a thread's elements lie.
struct Place {
  int fours;  // slots 0 to 3; slots 4 to 7 are 8 elements further on
  int eight;  // the 8 consecutive ones that it loads and stores for the pair
  bool is_odd;
};
__device__ inline Place place_in_row() {
  const int thread = static_cast<int>(threadIdx.x) % kWarpSize;
  return {16 * (thread / 2) + 4 * (thread % 2), kSlots * thread, thread % 2 != 0};
}
__device__ inline int element_of_slot(const Place& place, int slot) { return place.fours + slot % 4 + slot / 4 * 8; }

/// A row, or the part [low, high) of one.
struct Row {
  int begin;  // in the chunk; negative when the first row begins before it
  int low, high;
  __device__ bool holds(int element, int count) const { return element >= low && element + count <= high; }
};

/// Elements from `data` to the next 16-byte boundary.
template <class T>
__device__ inline int head_of(const T* data) {
  const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(data) % kVectorBytes);
  return static_cast<int>((kVectorBytes - past) % kVectorBytes / sizeof(T));
}
template <class T>
__device__ inline bool is_vector(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kVectorBytes == 0;
}

struct WholeRow {
  static constexpr bool kIsWhole = true;  // and all its tensors are at 16-byte boundaries: no checks
};
struct PartOfRow {
  static constexpr bool kIsWhole = false;
};

/// Calls `body(row, WholeRow or PartOfRow)` for the rows of a chunk. `head`: where the first boundary is; `is_aligned`:
/// all tensors have one there.
template <class Body>
__device__ inline void for_each_row(int numel, int head, bool is_aligned, Body body) {
  for (int begin = head == 0 ? 0 : head - kRowSize; begin < numel; begin += kRowSize) {
    const Row row{begin, begin < 0 ? -begin : 0, numel - begin < kRowSize ? numel - begin : kRowSize};
    if (is_aligned && row.low == 0 && row.high == kRowSize) {
      body(row, WholeRow{});
    } else {
      body(row, PartOfRow{});
    }
  }
}

/// Calls `body(chunk, index)` for every chunk of [first, end): one warp each, as many at a time as there are warps.
template <class Body>
__device__ inline void for_each_chunk(const Chunk* chunks, std::uint64_t first, std::uint64_t end, Body body) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t num_warps = std::uint64_t{gridDim.x} * blockDim.x / kWarpSize;
  for (std::uint64_t index = first + thread / kWarpSize; index < end; index += num_warps) {
    const Chunk* at = chunks + index;
    body(Chunk{load(&at->begin), load(&at->tensor), load(&at->numel)}, index);
  }
}

}  // namespace gradfuse::cuda
