#pragma once
// How wide the kernels that walk over chunks are launched.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/passes.hpp"
#include "kernels/cuda/row.hpp"

namespace gradfuse::cuda {

// Small, so that registers can be shared out finely: a kernel of 136 has three such blocks on an SM, of twice the size
// one.
inline constexpr unsigned kBlockSize = 128;

/// A persistent grid: as many blocks as the device holds at a time, or fewer if there are not so many chunks.
template <class... Params>
cudaError_t shape_for_chunks(const char* name, const Target& target, std::uint64_t num_chunks,
                             void (*kernel)(Params...), LaunchShape* shape) {
  int blocks_per_sm = 0;
  const cudaError_t status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks_per_sm, reinterpret_cast<const void*>(kernel), static_cast<int>(kBlockSize), 0);
  constexpr std::uint64_t kWarpsPerBlock = kBlockSize / kWarpSize;
  const std::uint64_t needed = (num_chunks + kWarpsPerBlock - 1) / kWarpsPerBlock;
  const auto resident = static_cast<std::uint64_t>(target.num_sms) * static_cast<std::uint64_t>(blocks_per_sm);
  *shape = {name, static_cast<unsigned>(std::min(needed, resident)), kBlockSize, target.stream};
  return status;
}

template <class... Params, class... Args>
cudaError_t launch_for_chunks(const char* name, const Target& target, std::uint64_t num_chunks,
                              void (*kernel)(Params...), const Args&... args) {
  if (num_chunks == 0) return cudaSuccess;
  LaunchShape shape;
  const cudaError_t status = shape_for_chunks(name, target, num_chunks, kernel, &shape);
  return status == cudaSuccess ? launch(shape, kernel, args...) : status;
}

}  // namespace gradfuse::cuda
