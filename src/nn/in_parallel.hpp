#pragma once
// A loop on the threads of the CPU backend.
#include <cstddef>

namespace gradfuse::nn {

/// Calls `body(i)` for i in [0, count), on as many threads as the `work` elements are worth. `body` does not throw.
template <class Body>
void in_parallel(std::size_t count, std::size_t work, int threads, Body body) {
  constexpr std::size_t kWorthAThread = std::size_t{16} << 10;
  const auto end = static_cast<std::ptrdiff_t>(count);
#pragma omp parallel for num_threads(threads) if (work > kWorthAThread) schedule(static)
  for (std::ptrdiff_t i = 0; i < end; ++i) body(static_cast<std::size_t>(i));
}

}  // namespace gradfuse::nn
