#pragma once
// Runs a kernel: every thread of a block on a fiber, in a seeded order.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace simt {

struct GridShape {
  const char* name;
  unsigned num_blocks;
  unsigned threads_per_block;
  int device;
  std::size_t dynamic_shared_bytes = 0;  // of each block
};

/// Calls `kernel` once for each thread. @throws Fault  the first thing that a thread did wrong.
void run_grid(const GridShape& shape, const std::function<void()>& kernel, std::uint64_t seed);

/// The device whose kernel runs; -1 outside of one.
int running_device() noexcept;

/// Where the running thread stands: which warp and lane it is, unique in the grid.
struct RunningThread {
  unsigned block, thread;
};
const RunningThread* running_thread() noexcept;

}  // namespace simt
