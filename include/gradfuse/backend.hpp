#pragma once
// Which processor does the work, and how.
#include <gradfuse/tensor_view.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct CUstream_st;  // cudaStream_t points to one

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

struct CudaOptions {
  /// As CUDA counts devices.
  int device = 0;
  /// The stream in whose order everything is done; it must outlive the backend and what was made with it. Null: the
  /// default stream. A window and its step may be captured into a graph, once one whole window was made before: each
  /// replay does the same with the gradients, options and loss scale that are in device memory then.
  CUstream_st* stream = nullptr;
};

/// The passes on a GPU, with the same bits. They are queued and nobody waits for them, until a result is asked for:
/// `Optimizer::last_report`, `LossScaler::scale`, step counts, norms.
/// @throws Error  `why_no_cuda` has a reason, or there is no such device.
std::shared_ptr<const Backend> cuda_backend(const CudaOptions& options = {});

/// Why CUDA cannot be used here: no driver, a driver too old, no GPU, built without. Empty if it can.
std::string why_no_cuda();

struct BackendInfo {
  std::string name;          ///< "cpu" or "cuda"
  std::string target;        ///< one of `cpu_targets()`, or the GPU's architecture, like "sm_90"
  int threads = 0;           ///< of a CPU
  std::string device = {};   ///< the GPU's name
  std::string driver = {};   ///< the newest CUDA that its driver knows, like "13.0"
  std::string toolkit = {};  ///< the CUDA that gradfuse was built with
};
BackendInfo describe(const Backend& backend);

/// Waits until everything queued is done. @throws Error  a pass has failed.
void synchronize(const Backend& backend);

/// What a GPU's stream-ordered memory pool holds, of the whole process: everything gradfuse allocates there, and what
/// else takes memory with cudaMallocAsync.
struct DevicePool {
  std::size_t used_bytes = 0;      ///< now
  std::size_t peak_bytes = 0;      ///< the most since the process began
  std::size_t reserved_bytes = 0;  ///< taken from the device, in use or kept to be used again
};
/// All 0 for a CPU, whose memory is the process's own.
DevicePool device_pool(const Backend& backend);

/// Copies a tensor [numel] of the backend's device to host memory, in order with the passes; waits for it.
void copy_to_host(const Backend& backend, const ConstTensorView& from, void* to);
/// Copies from host memory, in order with the passes; `from` may be changed at once.
void copy_from_host(const Backend& backend, const void* from, const TensorView& to);

}  // namespace gradfuse
