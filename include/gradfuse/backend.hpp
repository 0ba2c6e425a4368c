#pragma once
// Which processor does the work, and how.
#include <memory>
#include <string>
#include <vector>

namespace gradfuse {

struct CpuOptions {
  /// Threads of one pass; 0: as many as OpenMP would use (OMP_NUM_THREADS, else the processors this process may use).
  int threads = 0;
  /// One of `cpu_targets()`; empty: the fastest. Results are the same bits on every target and thread count.
  std::string target = {};
};

/// Runs the passes. Made by `cpu_backend`, shared by the objects that use it, immutable, safe to share among threads.
class Backend;

/// @throws Error  `threads` is negative or above 4096, or `target` is not available on this processor.
std::shared_ptr<const Backend> cpu_backend(const CpuOptions& options = {});

/// The SIMD targets that this processor can run, the fastest first: "avx512", "avx2", "neon"; "scalar" is always last.
std::vector<std::string> cpu_targets();

struct BackendInfo {
  std::string name;    ///< "cpu"
  std::string target;  ///< one of `cpu_targets()`
  int threads = 0;
};
BackendInfo describe(const Backend& backend);

}  // namespace gradfuse
