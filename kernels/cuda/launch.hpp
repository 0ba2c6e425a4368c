#pragma once
// Launching a kernel, on the device or in the emulation: `<<<>>>` is no C++ and gives no error.
#include "kernels/cuda/device_code.hpp"

namespace gradfuse::cuda {

struct LaunchShape {
  const char* name;  // of the kernel, for messages and counters
  unsigned num_blocks;
  unsigned threads_per_block;
  cudaStream_t stream;
  unsigned dynamic_shared_bytes = 0;  // of each block, for GF_DYNAMIC_SHARED
};

template <class... Params, class... Args>
cudaError_t launch(const LaunchShape& shape, void (*kernel)(Params...), const Args&... args) {
#if defined(__CUDACC__)
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.num_blocks);
  config.blockDim = dim3(shape.threads_per_block);
  config.stream = shape.stream;
  config.dynamicSmemBytes = shape.dynamic_shared_bytes;
  return cudaLaunchKernelEx(&config, kernel, Params(args)...);
#else
  return simt::launch(shape.name, shape.num_blocks, shape.threads_per_block, shape.dynamic_shared_bytes, shape.stream,
                      kernel, args...);
#endif
}

}  // namespace gradfuse::cuda
