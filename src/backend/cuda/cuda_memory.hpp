#pragma once
// The memory of one CUDA device, allocated and moved in the order of one stream.
#include <cuda_runtime_api.h>

#include "src/backend/cuda/staging_ring.hpp"
#include "src/backend/device_memory.hpp"

namespace gradfuse {

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(int device, cudaStream_t stream) : device_(device), stream_(stream) {}

  int device() const noexcept { return device_; }
  cudaStream_t stream() const noexcept { return stream_; }
  bool is_capturing() const;
  /// @throws Error  the stream is being captured into a graph, where `what` cannot be done.
  void check_not_capturing(const char* what) const;

  Buffer allocate(std::size_t num_bytes) const override;
  std::unique_ptr<Readback> make_readback(std::size_t num_bytes) const override;
  void clear(void* to, std::size_t num_bytes) const override;
  void copy(void* to, const void* from, std::size_t num_bytes) const override;
  void upload(void* to, const void* from, std::size_t num_bytes) const override;
  void download(void* to, const void* from, std::size_t num_bytes) const override;
  void wait() const override;
  DevicePool pool() const override;
  const char* why_unreachable(const void* data) const override;

 private:
  int device_;
  cudaStream_t stream_;
  mutable StagingRing ring_;
};

}  // namespace gradfuse
