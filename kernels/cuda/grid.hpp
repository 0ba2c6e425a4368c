#pragma once
// How wide the kernels are launched whose warps take one piece of work after the other: a chunk, a row.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/passes.hpp"
#include "kernels/cuda/row.hpp"

namespace gradfuse::cuda {

// Small, so that registers can be shared out finely: a kernel of 136 has three such blocks on an SM, of twice the size
// one.
inline constexpr unsigned kBlockSize = 128;

/// A persistent grid: as many blocks as the device holds at a time, or fewer if there is not so much work.
template <class... Params>
cudaError_t shape_for_warps(const char* name, const Target& target, std::uint64_t num_pieces, void (*kernel)(Params...),
                            LaunchShape* shape) {
  int blocks_per_sm = 0;
  const cudaError_t status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks_per_sm, reinterpret_cast<const void*>(kernel), static_cast<int>(kBlockSize), 0);
  constexpr std::uint64_t kWarpsPerBlock = kBlockSize / kWarpSize;
  const std::uint64_t needed = (num_pieces + kWarpsPerBlock - 1) / kWarpsPerBlock;
  const auto resident = static_cast<std::uint64_t>(target.num_sms) * static_cast<std::uint64_t>(blocks_per_sm);
  *shape = {name, static_cast<unsigned>(std::min(needed, resident)), kBlockSize, target.stream};
  return status;
}

template <class... Params, class... Args>
cudaError_t launch_for_warps(const char* name, const Target& target, std::uint64_t num_pieces,
                             void (*kernel)(Params...), const Args&... args) {
  if (num_pieces == 0) return cudaSuccess;
  LaunchShape shape;
  const cudaError_t status = shape_for_warps(name, target, num_pieces, kernel, &shape);
  return status == cudaSuccess ? launch(shape, kernel, args...) : status;
}

}  // namespace gradfuse::cuda
