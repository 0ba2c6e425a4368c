#include "src/backend/cuda/cuda_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <gradfuse/error.hpp>

namespace gradfuse {
namespace {

class CudaReadback final : public Readback {
 public:
  CudaReadback(const CudaMemory& memory, std::size_t num_bytes)
      : device_(memory.device()), stream_(memory.stream()), bytes_(num_bytes) {
    std::memset(bytes_.data(), 0, num_bytes);
  }

  void request(const void* from) override {
    const DeviceGuard guard(device_);
    check_cuda(cudaMemcpyAsync(bytes_.data(), from, bytes_.num_bytes(), cudaMemcpyDeviceToHost, stream_),
               "asking for a result");
    // External: if the stream is being captured, the event is recorded by every replay and can be waited for.
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream_, &capture), "asking whether the stream is being captured");
    const unsigned flags = capture == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;
    check_cuda(cudaEventRecordWithFlags(arrived_.get(), stream_, flags), "recording an event");
  }
  const void* wait() override {
    check_cuda(cudaEventSynchronize(arrived_.get()), "waiting for a result");
    return bytes_.data();
  }

 private:
  int device_;
  cudaStream_t stream_;
  PinnedBuffer bytes_;
  Event arrived_;
};

std::string out_of_memory(std::size_t num_bytes) {
  std::size_t free_bytes = 0, total_bytes = 0;
  (void)cudaMemGetInfo(&free_bytes, &total_bytes);
  return fmt::format("out of device memory: asked for {} bytes, free are {} of {}", num_bytes, free_bytes, total_bytes);
}

}  // namespace

bool CudaMemory::is_capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream_, &status), "asking whether the stream is being captured");
  return status != cudaStreamCaptureStatusNone;
}

void CudaMemory::check_not_capturing(const char* what) const {
  if (!is_capturing()) return;
  throw Error(fmt::format(
      "the stream is being captured into a graph, which cannot {}; make one whole window on the stream before the "
      "capture, and keep every pointer, group and number of micro-batches as it was",
      what));
}

Buffer CudaMemory::allocate(std::size_t num_bytes) const {
  const DeviceGuard guard(device_);
  check_not_capturing("allocate memory");
  void* data = nullptr;
  const std::size_t asked = std::max<std::size_t>(num_bytes, 1);
  const cudaError_t status = cudaMallocAsync(&data, asked, stream_);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error(out_of_memory(asked));
  }
  check_cuda(status, "allocating device memory");
  Buffer buffer(static_cast<std::byte*>(data), num_bytes, [device = device_, stream = stream_](std::byte* bytes) {
    int before = device;
    (void)cudaGetDevice(&before);
    (void)cudaSetDevice(device);
    // A stream that its owner has destroyed has finished its work or will: then wait, and free at once.
    if (cudaFreeAsync(bytes, stream) != cudaSuccess) {
      (void)cudaGetLastError();
      (void)cudaFree(bytes);
    }
    (void)cudaSetDevice(before);
  });
  clear(data, asked);
  return buffer;
}

std::unique_ptr<Readback> CudaMemory::make_readback(std::size_t num_bytes) const {
  const DeviceGuard guard(device_);
  check_not_capturing("allocate memory");
  return std::make_unique<CudaReadback>(*this, num_bytes);
}

void CudaMemory::clear(void* to, std::size_t num_bytes) const {
  if (num_bytes == 0) return;
  const DeviceGuard guard(device_);
  check_cuda(cudaMemsetAsync(to, 0, num_bytes, stream_), "clearing device memory");
}

void CudaMemory::copy(void* to, const void* from, std::size_t num_bytes) const {
  if (num_bytes == 0) return;
  const DeviceGuard guard(device_);
  check_cuda(cudaMemcpyAsync(to, from, num_bytes, cudaMemcpyDeviceToDevice, stream_), "copying device memory");
}

void CudaMemory::upload(void* to, const void* from, std::size_t num_bytes) const {
  const DeviceGuard guard(device_);
  check_not_capturing("take what has changed on the host");
  ring_.upload(to, from, num_bytes, stream_);
}

void CudaMemory::download(void* to, const void* from, std::size_t num_bytes) const {
  if (num_bytes == 0) return;
  const DeviceGuard guard(device_);
  check_not_capturing("give results to the host");
  check_cuda(cudaMemcpyAsync(to, from, num_bytes, cudaMemcpyDeviceToHost, stream_), "downloading");
  check_cuda(cudaStreamSynchronize(stream_), "waiting for a download");
}

void CudaMemory::wait() const {
  const DeviceGuard guard(device_);
  check_not_capturing("be waited for");
  check_cuda(cudaStreamSynchronize(stream_), "waiting for the stream");
}

DevicePool CudaMemory::pool() const {
  cudaMemPool_t pool = nullptr;
  check_cuda(cudaDeviceGetDefaultMemPool(&pool, device_), "asking for the device's memory pool");
  const auto attribute = [pool](cudaMemPoolAttr which) {
    std::uint64_t num_bytes = 0;
    check_cuda(cudaMemPoolGetAttribute(pool, which, &num_bytes), "asking what the memory pool holds");
    return static_cast<std::size_t>(num_bytes);
  };
  return {.used_bytes = attribute(cudaMemPoolAttrUsedMemCurrent),
          .peak_bytes = attribute(cudaMemPoolAttrUsedMemHigh),
          .reserved_bytes = attribute(cudaMemPoolAttrReservedMemCurrent)};
}

const char* CudaMemory::why_unreachable(const void* data) const {
  const DeviceGuard guard(device_);
  cudaPointerAttributes attributes{};
  check_cuda(cudaPointerGetAttributes(&attributes, data), "asking what a pointer points to");
  switch (attributes.type) {
    case cudaMemoryTypeDevice: return attributes.device == device_ ? "" : "its memory is that of another device";
    case cudaMemoryTypeHost:
    case cudaMemoryTypeManaged: return "";
    default: return "it points to host memory that the device cannot reach";
  }
}

}  // namespace gradfuse
